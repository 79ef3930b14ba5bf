# What first-pass scores are worth, and the thresholds that follow.
rule calibrate:
    input:
        stale=".snakemake/stale/calibrate@{retrieval}",
        corpus="data/corpus.parquet",
        index="data/index.parquet",
        questions="data/questions.parquet",
        sample="data/sample/calibration.parquet",
        hits="data/retrieved/{retrieval}/hits.parquet",
        labels="data/labels.csv",
        code=code(
            "artifacts",
            *RETRIEVAL_CODE,
            *(
                f"scoring/{f}.py"
                for f in ("cuts", "evidence", "first_passes", "sigmoid")
            ),
            "sources/labels.py",
            "stages/calibrate.py",
        ),
    output:
        "data/calibrated/{retrieval}/retrievals.parquet",
        "data/calibrated/{retrieval}/sigmoids.parquet",
        "data/calibrated/{retrieval}/thresholds.parquet",
        "data/calibrated/{retrieval}/candidates.parquet",
    log:
        "logs/calibrate/{retrieval}.log",
    conda:
        "../envs/arena.yaml"
    params:
        dvc=DVC,
        embedder=config["embedder"],
        store=config["store"],
        retrieval=lookup(dpath="retrieval/{retrieval}", within=config),
        reranker=config["reranker"],
        k=config["calibration"]["k"],
        widen_factor=config["calibration"]["widen_factor"],
        thresholds=config["calibration"]["thresholds"],
    shell:
        "({params.dvc} calibrate@{wildcards.retrieval} && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


# What the router of `adaptive` learns; empty unless the parameters ask for one.
rule train:
    input:
        stale=".snakemake/stale/train@{retrieval}",
        corpus="data/corpus.parquet",
        index="data/index.parquet",
        questions="data/questions.parquet",
        sample="data/sample/calibration.parquet",
        hits="data/retrieved/{retrieval}/hits.parquet",
        code=code(
            *LLM_CODE,
            *RETRIEVAL_CODE,
            *GRAPH_CODE,
            "scoring/answers.py",
            "scoring/silver.py",
            "stages/run.py",
            "stages/train.py",
            *(
                f"strategies/{f}"
                for f in ("adaptive", "iterative", "no_retrieval", "shared", "vanilla")
            ),
        ),
    output:
        "data/routers/{retrieval}/silver.parquet",
        "data/routers/{retrieval}/router.parquet",
        "data/routers/{retrieval}/confusion.parquet",
        "data/routers/{retrieval}/quality.parquet",
        "data/routers/{retrieval}/calls.parquet",
    log:
        "logs/train/{retrieval}.log",
    priority: 2  # cells wait for it
    conda:
        "../envs/arena.yaml"
    resources:
        model_slots=1,
    params:
        dvc=DVC,
        embedder=config["embedder"],
        store=config["store"],
        retrieval=lookup(dpath="retrieval/{retrieval}", within=config),
        silver=config["silver"],
        endpoint=config["llm"]["endpoint"],
        small_endpoint=config["small_llm"]["endpoint"],
        run=config["run"],
    shell:
        "({params.dvc} train@{wildcards.retrieval} && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule resolve:
    input:
        stale=".snakemake/stale/resolve@{strategy}-{retrieval}",
        retrievals="data/calibrated/{retrieval}/retrievals.parquet",
        sigmoids="data/calibrated/{retrieval}/sigmoids.parquet",
        thresholds="data/calibrated/{retrieval}/thresholds.parquet",
        router="data/routers/{retrieval}/router.parquet",
        code=code(
            "artifacts",
            "embedders/__init__.py",
            "records.py",
            "rerankers/__init__.py",
            "scoring/cuts.py",
            "stages/resolve.py",
            "strategies/__init__.py",
            "strategies/base.py",
        ),
        strategy="src/rag_arena/strategies/{strategy}/graph.py",
    output:
        "data/resolved/{strategy}/{retrieval}.parquet",
    log:
        "logs/resolve/{strategy}-{retrieval}.log",
    conda:
        "../envs/arena.yaml"
    params:
        dvc=DVC,
        strategy=lookup(dpath="strategy/{strategy}", within=config),
    shell:
        "({params.dvc} resolve@{wildcards.strategy}-{wildcards.retrieval} && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
