# Dataset, vectors, splits, first-pass hits.
rule download:
    input:
        corpus=f"{config['dataset']['path']}/Corpus.json",
        questions=f"{config['dataset']['path']}/Question.json",
        code=code("artifacts.py", "sources", "stages/download.py"),
    output:
        "data/corpus.parquet",
        "data/questions.parquet",
    params:
        dataset=config["dataset"],
    log:
        "logs/download.log",
    conda:
        "../envs/arena.yaml"
    shell:
        "({DVC} download && touch -c {output}) > {log} 2>&1"


rule index:
    input:
        corpus="data/corpus.parquet",
        code=code("artifacts.py", "embedders", "stages/index.py"),
    output:
        update("data/index.parquet"),
    params:
        embedder=config["embedder"],
    log:
        "logs/index.log",
    conda:
        "../envs/arena.yaml"
    shell:
        "({DVC} index && touch -c {output}) > {log} 2>&1"


rule sample:
    input:
        questions="data/questions.parquet",
        code=code("artifacts.py", "stages/sample.py"),
    output:
        "data/sample/evaluation.parquet",
        "data/sample/calibration.parquet",
    params:
        sample=config["sample"],
    log:
        "logs/sample.log",
    conda:
        "../envs/arena.yaml"
    shell:
        "({DVC} sample && touch -c {output}) > {log} 2>&1"


rule retrieve:
    input:
        corpus="data/corpus.parquet",
        index="data/index.parquet",
        questions="data/questions.parquet",
        code=code("artifacts.py", *RETRIEVAL_CODE, "stages/retrieve.py"),
    output:
        "data/retrieved/{retrieval}/hits.parquet",
        "data/retrieved/{retrieval}/timings.parquet",
    params:
        embedder=config["embedder"],
        store=config["store"],
        retrieval=lookup(dpath="retrieval/{retrieval}", within=config),
    log:
        "logs/retrieve/{retrieval}.log",
    conda:
        "../envs/arena.yaml"
    shell:
        "({DVC} retrieve@{wildcards.retrieval} && touch -c {output}) > {log} 2>&1"
