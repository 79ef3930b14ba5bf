# The tables that people read.
rule aggregate:
    input:
        stale=".snakemake/stale/aggregate",
        questions="data/questions.parquet",
        sample="data/sample/evaluation.parquet",
        calibrated=expand(
            "data/calibrated/{mode}/{name}.parquet", mode=MODES, name=CALIBRATED
        ),
        resolved=expand("data/resolved/{cell}.parquet", cell=RETRIEVING),
        hits=expand("data/retrieved/{mode}/hits.parquet", mode=MODES),
        search_timings=expand("data/retrieved/{mode}/timings.parquet", mode=MODES),
        runs=expand("data/runs/{cell}/{name}.parquet", cell=CELLS, name=RUN_TABLES),
        judged=expand(
            "data/judged/{cell}.{ext}", cell=CELLS, ext=["parquet", "calls.parquet"]
        ),
        truth=multiext("data/judged/known_truth", ".parquet", ".calls.parquet"),
        code=code(
            "artifacts",
            "decisions.py",
            "records.py",
            "scoring/answers.py",
            "scoring/board.py",
            "scoring/contrasts.py",
            "scoring/decisions.py",
            "scoring/evidence.py",
            "scoring/graders.py",
            "scoring/groups.py",
            "scoring/judge_quality.py",
            "scoring/node_costs.py",
            "scoring/oracle.py",
            "scoring/paths.py",
            "scoring/question_scores.py",
            "scoring/retrieval_quality.py",
            "scoring/settings_in_force.py",
            "scoring/silver.py",
            "scoring/verdicts.py",
            "stages/aggregate.py",
        ),
    output:
        report(
            "results/leaderboard.csv",
            caption="../report/leaderboard.rst",
            category="Results",
        ),
        "results/leaderboard.parquet",
        "results/scores.parquet",
        "results/settings.parquet",
        "results/contrasts.parquet",
        "results/judge_quality.parquet",
        "results/judge_truth.parquet",
        "results/retrieval_quality.parquet",
        "results/disagreement.parquet",
        "results/decisions.parquet",
        "results/paths.parquet",
        "results/oracle.parquet",
        "results/graders.parquet",
        "results/graders.csv",
        "results/node_costs.parquet",
        "results/node_costs.csv",
        "results/metrics.json",
    log:
        "logs/aggregate.log",
    conda:
        "../envs/arena.yaml"
    params:
        dvc=DVC,
        dataset=config["dataset"]["name"],
        model=config["llm"]["endpoint"]["model"],
        judge=config["judge"]["llm"]["endpoint"]["model"],
        grid=config["grid"],
        price=config["llm"]["price"],
        small_price=config["small_llm"]["price"],
        judge_price=config["judge"]["llm"]["price"],
        report=config["report"],
    shell:
        "({params.dvc} aggregate && touch -c {output}) > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
