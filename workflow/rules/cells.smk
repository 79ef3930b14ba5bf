# Answers and judgements of every cell.
rule run:
    input:
        stale=".snakemake/stale/run@{strategy}-{retrieval}",
        corpus="data/corpus.parquet",
        index="data/index.parquet",
        questions="data/questions.parquet",
        sample="data/sample/evaluation.parquet",
        hits="data/retrieved/{retrieval}/hits.parquet",
        resolved="data/resolved/{strategy}/{retrieval}.parquet",
        code=code(
            *LLM_CODE,
            *RETRIEVAL_CODE,
            *GRAPH_CODE,
            "stages/run.py",
            "strategies/shared",
        ),
        strategy=strategy_code,
    output:
        "data/runs/{strategy}/{retrieval}/answers.parquet",
        "data/runs/{strategy}/{retrieval}/calls.parquet",
        "data/runs/{strategy}/{retrieval}/timings.parquet",
    log:
        "logs/run/{strategy}-{retrieval}.log",
    priority: 1  # before judges: what is left at the end then fills every core
    conda:
        "../envs/arena.yaml"
    resources:
        model_slots=1,
    params:
        dvc=DVC,
        embedder=config["embedder"],
        store=config["store"],
        retrieval=lookup(dpath="retrieval/{retrieval}", within=config),
        reranker=config["reranker"],
        endpoint=config["llm"]["endpoint"],
        small_endpoint=config["small_llm"]["endpoint"],
        run=config["run"],
    shell:
        "({params.dvc} run@{wildcards.strategy}-{wildcards.retrieval} && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule run_floor:
    input:
        stale=".snakemake/stale/run_floor@{strategy}",
        questions="data/questions.parquet",
        sample="data/sample/evaluation.parquet",
        code=code(
            *LLM_CODE,
            *GRAPH_CODE,
            "stages/run.py",
            "strategies/shared/closed_book.md",
        ),
        strategy=strategy_code,
    output:
        "data/runs/{strategy}/none/answers.parquet",
        "data/runs/{strategy}/none/calls.parquet",
        "data/runs/{strategy}/none/timings.parquet",
    log:
        "logs/run/{strategy}-none.log",
    priority: 1  # before judges: what is left at the end then fills every core
    conda:
        "../envs/arena.yaml"
    resources:
        model_slots=1,
    params:
        dvc=DVC,
        strategy=lookup(dpath="floor/{strategy}", within=config),
        endpoint=config["llm"]["endpoint"],
        small_endpoint=config["small_llm"]["endpoint"],
        run=config["run"],
    shell:
        "({params.dvc} run_floor@{wildcards.strategy} && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule judge:
    input:
        stale=".snakemake/stale/judge@{strategy}-{retrieval}",
        questions="data/questions.parquet",
        sample="data/sample/evaluation.parquet",
        answers="data/runs/{strategy}/{retrieval}/answers.parquet",
        code=code(*JUDGE_CODE),
    output:
        "data/judged/{strategy}/{retrieval}.parquet",
        "data/judged/{strategy}/{retrieval}.calls.parquet",
    log:
        "logs/judge/{strategy}-{retrieval}.log",
    conda:
        "../envs/arena.yaml"
    resources:
        model_slots=1,
    params:
        dvc=DVC,
        endpoint=config["judge"]["llm"]["endpoint"],
        metrics=config["judge"]["metrics"],
    shell:
        "({params.dvc} judge@{wildcards.strategy}-{wildcards.retrieval} && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule judge_floor:
    input:
        stale=".snakemake/stale/judge_floor@{strategy}",
        questions="data/questions.parquet",
        sample="data/sample/evaluation.parquet",
        answers="data/runs/{strategy}/none/answers.parquet",
        code=code(*JUDGE_CODE),
    output:
        "data/judged/{strategy}/none.parquet",
        "data/judged/{strategy}/none.calls.parquet",
    log:
        "logs/judge/{strategy}-none.log",
    conda:
        "../envs/arena.yaml"
    resources:
        model_slots=1,
    params:
        dvc=DVC,
        endpoint=config["judge"]["llm"]["endpoint"],
        metrics=config["judge"]["metrics"],
    shell:
        "({params.dvc} judge_floor@{wildcards.strategy} && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule judge_truth:
    input:
        stale=".snakemake/stale/judge_truth",
        questions="data/questions.parquet",
        sample="data/sample/calibration.parquet",
        code=code(*JUDGE_CODE),
    output:
        "data/judged/known_truth.parquet",
        "data/judged/known_truth.calls.parquet",
    log:
        "logs/judge/truth.log",
    conda:
        "../envs/arena.yaml"
    resources:
        model_slots=1,
    params:
        dvc=DVC,
        endpoint=config["judge"]["llm"]["endpoint"],
        rating_tokens=config["judge"]["metrics"]["rating_tokens"],
        known_truth=config["judge"]["known_truth"],
    shell:
        "({params.dvc} judge_truth && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
