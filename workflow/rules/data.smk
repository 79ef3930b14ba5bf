# Dataset, vectors, splits, first-pass hits.
rule download:
    input:
        stale=".snakemake/stale/download",
        dataset=files_of(config["dataset"]["path"]),
        code=code(
            "artifacts",
            *(f"llm/{f}.py" for f in ("exchange", "keys", "ledger", "lookups")),
            "records.py",
            "sources",
            "stages/download.py",
        ),
    output:
        "data/corpus.parquet",
        "data/questions.parquet",
    log:
        "logs/download.log",
    conda:
        "../envs/arena.yaml"
    params:
        dvc=DVC,
        dataset=config["dataset"],
    shell:
        "({params.dvc} download && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule index:
    input:
        stale=".snakemake/stale/index",
        corpus="data/corpus.parquet",
        code=code("artifacts", *EMBEDDING_CODE, "stages/index.py"),
    output:
        update("data/index.parquet"),
    log:
        "logs/index.log",
    conda:
        "../envs/arena.yaml"
    params:
        dvc=DVC,
        embedder=config["embedder"],
    shell:
        "({params.dvc} index && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule sample:
    input:
        stale=".snakemake/stale/sample",
        questions="data/questions.parquet",
        code=code("artifacts", "records.py", "stages/sample.py"),
    output:
        "data/sample/evaluation.parquet",
        "data/sample/calibration.parquet",
    log:
        "logs/sample.log",
    conda:
        "../envs/arena.yaml"
    params:
        dvc=DVC,
        sample=config["sample"],
    shell:
        "({params.dvc} sample && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule retrieve:
    input:
        stale=".snakemake/stale/retrieve@{retrieval}",
        corpus="data/corpus.parquet",
        index="data/index.parquet",
        questions="data/questions.parquet",
        code=code("artifacts", *RETRIEVAL_CODE, "stages/retrieve.py"),
    output:
        "data/retrieved/{retrieval}/hits.parquet",
        "data/retrieved/{retrieval}/timings.parquet",
    log:
        "logs/retrieve/{retrieval}.log",
    conda:
        "../envs/arena.yaml"
    params:
        dvc=DVC,
        embedder=config["embedder"],
        store=config["store"],
        retrieval=lookup(dpath="retrieval/{retrieval}", within=config),
    shell:
        "({params.dvc} retrieve@{wildcards.retrieval} && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
