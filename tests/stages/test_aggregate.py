"""Aggregation of a hand-made grid: two cells, two modes, six questions."""

import json
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from rag_arena import artifacts
from rag_arena.decisions import UNCONFIRMED, claimed
from rag_arena.params import Params, validate
from rag_arena.records import Cell
from rag_arena.scoring.answers import rouge_l
from rag_arena.stages.aggregate import CellTables, Results, Retrieved, aggregate

DENSE, FLOOR = Cell("self_corrective", "dense"), Cell("no_retrieval", "none")
QUESTIONS = {  # id: answer, aliases, type, gold
    "q1": ("the Alps", ["Alps region"], "multi_hop", ["d1", "d2"]),
    "q2": ("Black Forest", [], "multi_hop", ["d3", "d4"]),
    "q3": ("milk", [], "single_hop", ["d5"]),
    "q4": ("Bohemia", [], "single_hop", ["d6"]),
    "q5": ("Rivers begin in mountains", [], "summary", ["d1", "d3"]),
    "q6": ("Ships sail north", [], "summary", []),
}
OUTSIDE = {"q7": ("Moravia", [], "single_hop", ["d7"])}


def answer(question_id: str, text: str | None, retrieved: str = "", used: str = "", **more: Any) -> dict[str, Any]:
    return {
        "question_id": question_id,
        "question_type": QUESTIONS[question_id][2],
        "status": "failed" if text is None else "answered",
        "error": "broken" if text is None else None,
        "answer": text,
        "retrieved_ids": retrieved.split(),
        "used_ids": used.split(),
        "contexts": used.split(),
        "corrected": None,
        "changed": None,
        "llm_calls": 1,
        "tokens_in": 100,
        "tokens_out": 10,
        "small_tokens_in": 0,
        "small_tokens_out": 0,
        "trace": "[]",
        **more,
    }


def judgement(question_id: str, first: int | None = None, second: int | None = None, **more: Any) -> dict[str, Any]:
    rated = first is not None and second is not None
    empty = dict.fromkeys(("claims", "supported", "faithfulness", "faithfulness_error", "echo"))
    return {
        "question_id": question_id,
        "question_type": QUESTIONS[question_id][2],
        "accuracy_first": first,
        "accuracy_second": second,
        "answer_accuracy": (first / 4 + second / 4) / 2 if rated else None,  # type: ignore[operator]
        "accuracy_error": None if rated else "no valid rating",
        **empty,
        "judge_calls": 2,
        "tokens_in": 1000,
        "tokens_out": 20,
        **more,
    }


def timing(
    question_id: str, llm_s: float, search_s: float = 0.0, grading_s: float = 0.0, recorded: int = 0, replayed: int = 0
) -> dict[str, Any]:
    return {
        "question_id": question_id,
        "llm_s": llm_s,
        "search_s": search_s,
        "grading_s": grading_s,
        "recorded_searches": recorded,
        "replayed_calls": replayed,
    }


def call(question_id: str, position: int, node: str, tokens_in: int, tokens_out: int, latency_s: float) -> dict[str, Any]:
    texts = {"key": "k", "endpoint": "{}", "request": "{}", "reply": "{}"}
    tokens = {"tokens_in": tokens_in, "tokens_out": tokens_out}
    return {
        "question_id": question_id,
        "position": position,
        "node": node,
        **texts,
        **tokens,
        "latency_s": latency_s,
        "replayed": False,
    }


RESOLVED = {
    DENSE: [
        {"key": "k", "value": "3", "origin": "typed"},
        {"key": "threshold", "value": "0.41", "origin": "auto"},
    ],
    FLOOR: [],
}
CUT = {
    "separates": "bad",
    "n_good": 20,
    "n_acceptable": 3,
    "n_bad": 2,
    "n_unlabelled": 1,
    "cut": 0.41,
    "precision": 1.0,
    "recall": 0.5,
}
CORRECTED = {"corrected": True, "changed": True}
STOOD = {"corrected": False, "changed": False}
SMALL = {"small_tokens_in": 150, "small_tokens_out": 12}
ANSWERS = {
    DENSE: [
        answer(
            "q1", f"{UNCONFIRMED}The Alps", "d1 d2 d9", "d1 d2 d9", **STOOD, tokens_in=200, tokens_out=20, **SMALL
        ),  # right, the note aside
        answer("q2", "the Rhine", "d3 d4", "d3", corrected=True, changed=False, llm_calls=2),  # retrieved, not all used
        answer("q3", "It is milk.", "d5", "d5", **STOOD),  # right by containment
        answer("q4", "Moravia", "d7", "d7", **CORRECTED),  # never retrieved
        answer("q5", "Rivers begin in lakes", "d1 d3", "d3 d1", **CORRECTED),  # used, but wrong by the judge
        answer("q6", None, llm_calls=0, tokens_in=0, tokens_out=0),  # failed
    ],
    FLOOR: [answer(q, "Bohemia") for q in QUESTIONS],
}
JUDGEMENTS = {
    DENSE: [
        judgement("q1", 4, 4, claims=2, supported=1, faithfulness=1 / 2, echo=False),
        judgement("q3", 4, 2, claims=3, faithfulness_error="2 verdicts for 3 claims", echo=True),
        judgement("q5", 2, 0, claims=1, supported=1, faithfulness=1.0, echo=False),
        judgement("q4", None, 4, claims=None, faithfulness_error="claims could not be read"),
    ],
    FLOOR: [judgement("q5", 4, 2), judgement("q1", 0, 0)],
}
TIMINGS = {
    DENSE: [timing(q, llm_s=i, search_s=0.5, grading_s=0.125, recorded=2, replayed=1) for i, q in enumerate(QUESTIONS, 1)],
    FLOOR: [timing(q, llm_s=1.0) for q in QUESTIONS],
}
CALLS = {
    DENSE: [call("q1", 0, "rewrite", 8, 1, 1.0), call("q1", 1, "generate", 20, 4, 2.0), call("q2", 0, "generate", 30, 6, 4.0)],
    FLOOR: [],
}
FIRST_PASS_S = dict.fromkeys((*QUESTIONS, *OUTSIDE), 0.25)
RANKINGS = {
    "dense": {
        "q1": "d1 d9 d2",
        "q2": "d9 d8 d7 d3",
        "q3": "d5",
        "q4": "d9",
        "q5": "d3 d1",
        "q6": "d1",
        "q7": "d9 d9x d9y d9z d9w d7",
    },
    "sparse": {"q1": "d1 d2 d3", "q2": "d3 d8 d7", "q3": "d5", "q5": "d3 d1 d2", "q6": "d2", "q7": "d7"},
}
KNOWN = [  # kind, is correct, score
    ("same", True, 1.0),
    ("same", True, 0.75),
    ("alias", True, 0.5),
    ("other", False, 0.0),
    ("other", False, 0.75),
    ("corrupted", False, None),
]


def configured(params: Params, **changes: Any) -> Params:
    values = params.model_dump()
    values["grid"] = {"strategies": ["self_corrective"], "modes": ["dense"], "floor": ["no_retrieval"]}
    values["report"]["focus"] = "self_corrective-dense"
    values["llm"]["price"] = {"input": 3.0, "output": 15.0}
    values["small_llm"]["price"] = {"input": 0.1, "output": 0.4}
    values["judge"]["llm"]["price"] = {"input": 0.5, "output": 2.0}
    for key, value in changes.items():
        section, name = key.split("__")
        values[section][name] = value
    return validate(values, "test")


def questions_table(without_gold: Collection[str] = (), origins: Mapping[str, str] = MappingProxyType({})) -> pa.Table:
    rows = [
        {
            "question_id": q,
            "question": f"{q}?",
            "answer": reference,
            "aliases": aliases,
            "question_type": kind,
            "gold_ids": [] if q in without_gold else gold,
            "decomposition": [],
            "where": (),
            "origin": origins.get(q),
        }
        for q, (reference, aliases, kind, gold) in {**QUESTIONS, **OUTSIDE}.items()
    ]
    return artifacts.table(artifacts.QUESTIONS, rows)


def sample_table(ids: list[str]) -> pa.Table:
    rows = [{"question_id": q, "question_type": QUESTIONS[q][2], "stratum_size": 2, "stratum_weight": 1.0} for q in ids]
    return artifacts.table(artifacts.SAMPLE, rows)


def retrieved() -> dict[str, Retrieved]:
    found = {}
    for mode, rankings in RANKINGS.items():
        hits = [
            {"question_id": q, "rank": rank, "doc_id": doc_id, "score": 1 / rank, "cosine": 1 / rank}
            for q, ranking in rankings.items()
            for rank, doc_id in enumerate(ranking.split(), 1)
        ]
        seconds = [{"question_id": q, "seconds": s} for q, s in FIRST_PASS_S.items()]
        found[mode] = Retrieved(
            artifacts.table(artifacts.HITS, hits),
            artifacts.table(artifacts.SEARCH_TIMINGS, seconds),
            artifacts.table(artifacts.THRESHOLDS, [{**CUT, "scorer": s} for s in ("cosine", "relevance")]),
        )
    return found


def known_table(pairs: list[tuple[str, bool, float | None]]) -> pa.Table:
    rows = [
        {
            "question_id": f"k{i}",
            "kind": kind,
            "candidate": "candidate",
            "is_correct": is_correct,
            "accuracy_first": None,
            "accuracy_second": None,
            "answer_accuracy": score,
            "error": "no valid rating" if score is None else None,
        }
        for i, (kind, is_correct, score) in enumerate(pairs)
    ]
    return artifacts.table(artifacts.KNOWN_TRUTH, rows)


def aggregated(
    params: Params,
    answers: dict[Cell, list[dict[str, Any]]] | None = None,
    judgements: dict[Cell, list[dict[str, Any]]] | None = None,
    known: list[tuple[str, bool, float | None]] | None = None,
    sample: list[str] | None = None,
    without_gold: Collection[str] = (),
    origins: Mapping[str, str] = MappingProxyType({}),
) -> Results:
    answers, judgements = answers or ANSWERS, judgements or JUDGEMENTS
    cells = {
        cell: CellTables(
            artifacts.table(artifacts.RESOLVED, RESOLVED[cell]),
            artifacts.table(artifacts.ANSWERS, answers[cell]),
            artifacts.table(artifacts.CALLS, CALLS[cell]),
            artifacts.table(artifacts.TIMINGS, TIMINGS[cell]),
            artifacts.table(artifacts.JUDGEMENTS, judgements[cell]),
        )
        for cell in answers
    }
    truth = known_table(KNOWN if known is None else known)
    questions, drawn = questions_table(without_gold, origins), sample_table(sample or list(QUESTIONS))
    return aggregate(configured(params), questions, drawn, retrieved(), cells, truth)


@pytest.fixture(scope="module")
def results(params: Params) -> Results:
    return aggregated(params)


def board(results: Results, cell: Cell = DENSE, group: str = "all") -> dict[str, Any]:
    rows = results.tables["leaderboard"].to_pylist()
    return next(r for r in rows if (r["strategy"], r["retrieval"], r["question_type"]) == (cell.strategy, cell.retrieval, group))


def score(results: Results, question_id: str, cell: Cell = DENSE) -> dict[str, Any]:
    return next(
        r for r in results.tables["scores"].to_pylist() if r["question_id"] == question_id and r["strategy"] == cell.strategy
    )


# The leaderboard


def test_there_is_a_row_per_cell_and_question_type_and_one_over_all(results: Results) -> None:
    rows = [(r["strategy"], r["retrieval"], r["question_type"]) for r in results.tables["leaderboard"].to_pylist()]
    groups = ("all", "multi_hop", "single_hop", "summary")
    assert rows == [(s, m, g) for s, m in (("no_retrieval", "none"), ("self_corrective", "dense")) for g in groups]


def test_a_question_type_that_was_not_asked_has_no_row(params: Params) -> None:
    asked = ["q1", "q3"]
    answers = {cell: [row for row in rows if row["question_id"] in asked] for cell, rows in ANSWERS.items()}
    judgements = {cell: [row for row in rows if row["question_id"] in asked] for cell, rows in JUDGEMENTS.items()}
    found = aggregated(params, answers, judgements, sample=asked)
    assert set(found.tables["leaderboard"]["question_type"].to_pylist()) == {"all", "multi_hop", "single_hop"}


def test_questions_are_counted_as_planned_answered_failed_judged_and_judge_failed(results: Results) -> None:
    columns = ("n_planned", "n_with_gold", "n_answered", "n_failed", "n_judged", "n_judge_failed")
    failed_judgements = {"q3", "q4"}
    assert tuple(board(results)[c] for c in columns) == (6, 5, 5, 1, 4, len(failed_judgements))
    assert tuple(board(results, group="summary")[c] for c in columns) == (2, 1, 1, 1, 1, 0)
    assert tuple(board(results, FLOOR)[c] for c in columns) == (6, 5, 6, 0, 2, 0)


def test_questions_without_gold_documents_are_counted_and_scored_by_their_answers_alone(params: Params, results: Results) -> None:
    found = aggregated(params, without_gold={"q1", "q4"})
    assert (board(found)["n_planned"], board(found)["n_with_gold"]) == (6, 3)
    own = ("recall", "precision", "failure")
    assert [score(found, "q4")[column] for column in own] == [None, None, None], "wrong, and nobody knows where"
    for column in ("em", "f1", "contains", "rouge_l", "answer_accuracy", "faithfulness", "correct"):
        assert score(found, "q1")[column] == score(results, "q1")[column]
    kept = [score(results, q)["recall"] for q in ("q2", "q3", "q5")]
    assert board(found)["recall"] == pytest.approx(sum(kept) / len(kept))


def test_a_dataset_without_gold_documents_leaves_empty_whatever_is_judged_against_them(params: Params) -> None:
    found = aggregated(params, without_gold={*QUESTIONS, *OUTSIDE})
    rows = found.tables["leaderboard"].to_pylist()
    assert {(row["n_with_gold"], row["recall"], row["precision"]) for row in rows} == {(0, None, None)}
    assert all(row["rouge_l"] is not None for row in rows)
    assert {row["failure"] for row in found.tables["scores"].to_pylist()} <= {None, "failed"}
    assert found.tables["retrieval_quality"].num_rows == 0
    assert {row["gold_lost_rate"] for row in found.tables["paths"].to_pylist()} == {None}
    assert found.metrics["recall"] is None
    assert found.metrics["f1"] is not None


def test_recall_is_the_share_of_gold_documents_in_the_prompt(results: Results) -> None:
    q1, q2, q3, q4, q5 = 2 / 2, 1 / 2, 1 / 1, 0 / 1, 2 / 2
    assert board(results)["recall"] == pytest.approx((q1 + q2 + q3 + q4 + q5) / 5)
    assert board(results, group="multi_hop")["recall"] == (q1 + q2) / 2


def test_precision_is_the_share_of_the_prompt_that_is_gold(results: Results) -> None:
    q1, q2, q3, q4, q5 = 2 / 3, 1 / 1, 1 / 1, 0 / 1, 2 / 2
    assert board(results)["precision"] == pytest.approx((q1 + q2 + q3 + q4 + q5) / 5)


def test_exact_match_counts_the_short_answers_alone(results: Results) -> None:
    q1, q2, q3, q4 = 1, 0, 0, 0
    assert board(results)["em"] == (q1 + q2 + q3 + q4) / 4


def test_f1_counts_the_short_answers_alone(results: Results) -> None:
    q1, q2, q3, q4 = 1, 0, 2 * 1 / (len(["it", "is", "milk"]) + len(["milk"])), 0
    assert board(results)["f1"] == pytest.approx((q1 + q2 + q3 + q4) / 4)


def test_containment_counts_the_short_answers_alone(results: Results) -> None:
    q1, q2, q3, q4 = 1, 0, 1, 0
    assert board(results)["contains"] == (q1 + q2 + q3 + q4) / 4


def test_summaries_have_no_exact_match_f1_or_containment(results: Results) -> None:
    assert [board(results, group="summary")[c] for c in ("em", "f1", "contains")] == [None] * 3


def test_rouge_counts_every_answered_question(results: Results) -> None:
    q5 = 2 * 3 / (4 + 4)
    others = [rouge_l(claimed(row["answer"]), QUESTIONS[row["question_id"]][0]) for row in ANSWERS[DENSE][:4]]
    assert board(results, group="summary")["rouge_l"] == pytest.approx(q5)
    assert board(results)["rouge_l"] == pytest.approx((sum(others) + q5) / 5)


def test_answer_accuracy_is_the_mean_over_judgements_that_did_not_fail(results: Results) -> None:
    q1, q3, q5 = (4 / 4 + 4 / 4) / 2, (4 / 4 + 2 / 4) / 2, (2 / 4 + 0 / 4) / 2
    assert board(results)["answer_accuracy"] == pytest.approx((q1 + q3 + q5) / 3)
    assert board(results, group="single_hop")["answer_accuracy"] == q3


def test_faithfulness_is_the_mean_over_judgements_that_did_not_fail(results: Results) -> None:
    q1, q5 = 1 / 2, 1 / 1
    assert board(results)["faithfulness"] == (q1 + q5) / 2


def test_a_group_without_a_valid_judgement_has_no_faithfulness(results: Results) -> None:
    assert board(results, group="single_hop")["faithfulness"] is None


def test_correction_and_change_are_rates_over_the_answered_questions(results: Results) -> None:
    fired, changed, answered = {"q2", "q4", "q5"}, {"q4", "q5"}, 5
    assert board(results)["correction_rate"] == len(fired) / answered
    assert board(results)["changed_rate"] == len(changed) / answered


def test_calls_and_tokens_add_up_over_every_question_even_failed_ones(results: Results) -> None:
    assert board(results)["llm_calls"] == 1 + 2 + 1 + 1 + 1 + 0
    assert board(results)["tokens_in"] == 200 + 100 + 100 + 100 + 100 + 0
    assert board(results)["tokens_out"] == 20 + 10 + 10 + 10 + 10 + 0


def test_cost_is_each_models_tokens_times_its_price_per_million(results: Results) -> None:
    large = (600 - 150) * 3.0 / 1e6 + (60 - 12) * 15.0 / 1e6
    small = 150 * 0.1 / 1e6 + 12 * 0.4 / 1e6
    assert board(results)["cost_usd"] == pytest.approx(large + small)


def test_a_cell_without_retrieval_has_recall_zero_and_no_precision_faithfulness_or_correction(results: Results) -> None:
    row = board(results, FLOOR)
    assert row["recall"] == 0.0
    assert [row[c] for c in ("precision", "faithfulness", "correction_rate", "changed_rate")] == [None] * 4


def test_a_cell_whose_every_question_failed_has_counts_and_no_means(params: Params) -> None:
    answers = {DENSE: [answer(q, None) for q in QUESTIONS], FLOOR: ANSWERS[FLOOR]}
    row = board(aggregated(params, answers, {**JUDGEMENTS, DENSE: []}))
    assert (row["n_planned"], row["n_answered"], row["n_failed"], row["n_judged"]) == (6, 0, 6, 0)
    assert {row[c] for c in ("recall", "precision", "em", "f1", "contains", "rouge_l", "answer_accuracy", "faithfulness")} == {
        None
    }


def display(results: Results, group: str) -> Any:
    shown = results.displays["leaderboard"]
    return shown[(shown.strategy == "self_corrective") & (shown.question_type == group)].iloc[0]


def test_the_display_adds_latencies_of_model_grading_live_search_and_recorded_searches(results: Results) -> None:
    row = display(results, "all")
    seconds = [llm_s + 0.5 + 0.125 + 2 * 0.25 for llm_s in (1, 2, 3, 4, 5, 6)]
    assert row["latency_p50_s"] == pytest.approx((seconds[2] + seconds[3]) / 2)
    assert row["latency_p95_s"] == pytest.approx(np.percentile(seconds, 95))
    assert row["replayed_calls"] == 6 * 1


def test_latencies_of_a_question_type_are_those_of_its_questions(results: Results) -> None:
    row = display(results, "summary")
    assert row["latency_p50_s"] == pytest.approx(((5 + 6) / 2) + 0.5 + 0.125 + 2 * 0.25)


def test_the_display_is_the_leaderboard_with_timings_beside_it(results: Results) -> None:
    shown = results.displays["leaderboard"]
    shown = shown.astype(object).where(shown.notna(), None)
    columns = results.tables["leaderboard"].column_names
    assert shown[columns].to_dict("records") == results.tables["leaderboard"].to_pylist()
    assert [c for c in shown.columns if c not in columns] == ["latency_p50_s", "latency_p95_s", "replayed_calls"]


def test_the_order_of_the_cells_changes_no_table(params: Params, results: Results) -> None:
    turned = aggregated(params, dict(reversed(ANSWERS.items())))
    assert turned.tables == results.tables


# Scores and failure classes


@pytest.mark.parametrize(
    ("question_id", "correct", "failure"),
    [
        ("q1", True, None),
        ("q2", False, "retrieved but not used"),
        ("q3", True, None),
        ("q4", False, "evidence not retrieved"),
        ("q5", False, "used but answered wrong"),
        ("q6", False, "failed"),
    ],
)
def test_each_question_is_right_or_says_where_it_went_wrong(
    results: Results, question_id: str, correct: bool, failure: str | None
) -> None:
    row = score(results, question_id)
    assert (row["correct"], row["failure"]) == (correct, failure)


def test_an_alias_counts_as_the_answer(params: Params) -> None:
    answers = {**ANSWERS, DENSE: [answer("q1", "alps region")]}
    row = score(aggregated(params, answers), "q1")
    assert (row["em"], row["f1"], row["correct"]) == (1.0, 1.0, True)


@pytest.mark.parametrize(
    ("first", "second", "correct"),
    [(4, 4, True), (4, 2, True), (2, 2, False), (0, 4, False), (None, 4, None)],
)
def test_a_summary_is_right_from_an_accuracy_of_three_quarters_and_unknown_without_one(
    params: Params, first: int | None, second: int, correct: bool | None
) -> None:
    judgements = {**JUDGEMENTS, DENSE: [judgement("q5", first, second)]}
    assert score(aggregated(params, judgements=judgements), "q5")["correct"] is correct


def test_a_summary_that_was_not_judged_is_neither_right_nor_a_failure(params: Params) -> None:
    row = score(aggregated(params, judgements={**JUDGEMENTS, DENSE: []}), "q5")
    assert (row["correct"], row["failure"]) == (None, None)


def test_a_failed_question_has_no_scores_at_all(results: Results) -> None:
    row = score(results, "q6")
    columns = ("recall", "precision", "em", "f1", "contains", "rouge_l", "answer_accuracy", "faithfulness")
    assert [row[c] for c in columns] == [None] * len(columns)


def test_a_question_without_gold_documents_has_no_recall(results: Results) -> None:
    row = score(results, "q6", FLOOR)
    assert (row["recall"], row["precision"], row["failure"]) == (None, None, None)


# The judge, judged


def truth(results: Results, kind: str) -> dict[str, Any]:
    return next(row for row in results.tables["judge_truth"].to_pylist() if row["kind"] == kind)


@pytest.mark.parametrize(
    ("kind", "asked", "failed", "right"),
    [("same", 2, 0, 2 / 2), ("alias", 1, 0, 0 / 1), ("other", 2, 0, 1 / 2), ("corrupted", 1, 1, 0 / 1)],
)
def test_the_judge_is_right_about_a_kind_of_pair_as_often_as_it_accepts_or_rejects_as_it_should(
    results: Results, kind: str, asked: int, failed: int, right: float
) -> None:
    assert truth(results, kind) == {"kind": kind, "n_asked": asked, "n_failed": failed, "share_right": right, "p_chance": None}


def test_the_judge_over_all_pairs_has_balanced_accuracy_and_fishers_p(results: Results) -> None:
    right_pairs, wrong_pairs = 2 / 3, 1 / 3
    accepted_of_right, accepted_of_wrong = (2, 1), (1, 2)
    row = truth(results, "all")
    assert (row["n_asked"], row["n_failed"]) == (6, 1)
    assert row["share_right"] == pytest.approx((right_pairs + wrong_pairs) / 2)
    assert row["p_chance"] == pytest.approx(
        stats.fisher_exact([accepted_of_right, accepted_of_wrong], alternative="greater").pvalue
    )


def test_a_judge_that_accepts_everything_is_half_right_and_no_better_than_chance(params: Params) -> None:
    row = truth(aggregated(params, known=[("same", True, 1.0)] * 3 + [("other", False, 1.0)] * 3), "all")
    assert (row["share_right"], row["p_chance"]) == ((3 / 3 + 0 / 3) / 2, 1.0)


def test_a_perfect_judge_is_right_beyond_chance(params: Params) -> None:
    row = truth(aggregated(params, known=[("same", True, 1.0)] * 4 + [("other", False, 0.0)] * 4), "all")
    ways_to_choose_4_of_8 = 8 * 7 * 6 * 5 / (4 * 3 * 2 * 1)
    assert row["share_right"] == 1.0
    assert row["p_chance"] == pytest.approx(1 / ways_to_choose_4_of_8)


@pytest.mark.parametrize("known", [[], [("same", True, 1.0)], [("other", False, 0.0)]])
def test_without_both_right_and_wrong_pairs_nothing_is_claimed_of_the_judge(params: Params, known: list[Any]) -> None:
    row = truth(aggregated(params, known=known), "all")
    assert (row["n_asked"], row["share_right"], row["p_chance"]) == (len(known), None, None)


def quality(results: Results, cell: Cell = DENSE) -> dict[str, Any]:
    return next(r for r in results.tables["judge_quality"].to_pylist() if r["strategy"] == cell.strategy)


def test_accuracys_failures_and_the_disagreement_of_its_ratings_are_counted(results: Results) -> None:
    row = quality(results)
    disagreeing, rated = {"q3", "q5"}, {"q1", "q3", "q5"}
    assert (row["accuracy_asked"], row["accuracy_failed"]) == (4, 1)
    assert row["disagreement_rate"] == pytest.approx(len(disagreeing) / len(rated))


def test_faithfulness_failures_and_echoes_are_counted(results: Results) -> None:
    row = quality(results)
    echoing, readable = {"q3"}, {"q1", "q3", "q5"}
    assert (row["faithfulness_asked"], row["faithfulness_failed"]) == (4, 2)
    assert row["echo_rate"] == pytest.approx(len(echoing) / len(readable))


def test_faithfulness_that_was_never_asked_has_no_echo_rate(results: Results) -> None:
    row = quality(results, FLOOR)
    assert (row["faithfulness_asked"], row["faithfulness_failed"], row["echo_rate"]) == (0, 0, None)


def test_ratings_that_all_failed_have_no_disagreement_rate(params: Params) -> None:
    row = quality(aggregated(params, judgements={**JUDGEMENTS, DENSE: [judgement("q1"), judgement("q2", 4)]}))
    assert (row["accuracy_asked"], row["accuracy_failed"], row["disagreement_rate"]) == (2, 2, None)


def test_the_judges_own_tokens_are_priced_at_its_own_endpoint(results: Results) -> None:
    row = quality(results)
    assert (row["tokens_in"], row["tokens_out"]) == (4 * 1000, 4 * 20)
    assert row["cost_usd"] == pytest.approx(4 * 1000 * 0.5 / 1e6 + 4 * 20 * 2.0 / 1e6)


# Retrieval


def retrieval(results: Results, mode: str, group: str) -> dict[str, Any]:
    rows = results.tables["retrieval_quality"].to_pylist()
    return next(r for r in rows if (r["retrieval"], r["question_type"]) == (mode, group))


def test_retrieval_is_judged_on_every_question_with_gold_documents_sampled_or_not(results: Results) -> None:
    with_gold = [q for q, (_, _, _, gold) in {**QUESTIONS, **OUTSIDE}.items() if gold]
    assert retrieval(results, "dense", "all")["n_questions"] == len(with_gold) == 6
    assert retrieval(results, "dense", "single_hop")["n_questions"] == len(["q3", "q4", "q7"])


def test_recall_at_k_is_the_share_of_gold_documents_among_the_first_k(results: Results) -> None:
    row = retrieval(results, "dense", "all")
    at_1 = [1 / 2, 0 / 2, 1 / 1, 0 / 1, 1 / 2, 0 / 1]
    at_3 = [2 / 2, 0 / 2, 1 / 1, 0 / 1, 2 / 2, 0 / 1]
    at_5 = [2 / 2, 1 / 2, 1 / 1, 0 / 1, 2 / 2, 0 / 1]
    at_10 = [2 / 2, 1 / 2, 1 / 1, 0 / 1, 2 / 2, 1 / 1]
    for k, shares in ((1, at_1), (3, at_3), (5, at_5), (10, at_10)):
        assert row[f"recall_at_{k}"] == pytest.approx(sum(shares) / 6)


def test_reciprocal_rank_is_of_the_first_gold_document(results: Results) -> None:
    first_ranks = [1 / 1, 1 / 4, 1 / 1, 0, 1 / 1, 1 / 6]
    assert retrieval(results, "dense", "all")["mrr"] == pytest.approx(sum(first_ranks) / 6)


def test_a_question_with_no_hits_counts_as_empty_and_as_a_miss(results: Results) -> None:
    row = retrieval(results, "sparse", "single_hop")
    assert row["empty_rate"] == pytest.approx(1 / 3)
    assert row["recall_at_10"] == pytest.approx((1 / 1 + 0 / 1 + 1 / 1) / 3)
    assert retrieval(results, "dense", "all")["empty_rate"] == 0


def test_two_modes_disagree_where_their_top_documents_differ(results: Results) -> None:
    [row] = results.tables["disagreement"].to_pylist()
    differing = {"q2", "q4", "q6", "q7"}
    overlaps = {
        "q1": len({"d1", "d2"}) / len({"d1", "d2", "d9", "d3"}),
        "q2": len({"d8", "d7"}) / len({"d9", "d8", "d7", "d3"}),
        "q3": 1 / 1,
        "q4": 0 / 1,
        "q5": len({"d1", "d3"}) / len({"d1", "d2", "d3"}),
        "q6": 0 / 2,
        "q7": 0 / 4,
    }
    assert (row["retrieval_a"], row["retrieval_b"], row["n_questions"]) == ("dense", "sparse", 7)
    assert row["top_1_differs"] == pytest.approx(len(differing) / 7)
    assert row["top_3_overlap"] == pytest.approx(sum(overlaps.values()) / 7)


# metrics.json


def test_metrics_name_the_focus_and_are_six_rounded_numbers_of_it(results: Results) -> None:
    row = board(results)
    assert results.metrics == {
        "cell": f"{row['strategy']}-{row['retrieval']}",
        "recall": round(row["recall"], 4),
        "precision": round(row["precision"], 4),
        "f1": round(row["f1"], 4),
        "contains": round(row["contains"], 4),
        "correction_rate": round(3 / 5, 4),
        "tokens_per_question": round((600 + 60) / 6, 1),
    }


def test_settings_in_force_stand_beside_the_labelled_retrievals_that_a_calibrated_one_rests_on(results: Results) -> None:
    rows = results.tables["settings"].to_pylist()
    counts = ("n_good", "n_acceptable", "n_bad", "n_unlabelled")
    assert [(r["strategy"], r["retrieval"], r["key"], r["value"], r["origin"], [r[c] for c in counts]) for r in rows] == [
        ("self_corrective", "dense", "k", "3", "typed", [None] * 4),
        ("self_corrective", "dense", "threshold", "0.41", "auto", [20, 3, 2, 1]),
    ]


def test_metrics_of_a_floor_are_null_where_undefined_and_fit_in_json(params: Params) -> None:
    values = configured(params, report__focus="no_retrieval-none")
    cells = {
        FLOOR: CellTables(
            artifacts.table(artifacts.RESOLVED, []),
            artifacts.table(artifacts.ANSWERS, ANSWERS[FLOOR]),
            artifacts.table(artifacts.CALLS, CALLS[FLOOR]),
            artifacts.table(artifacts.TIMINGS, TIMINGS[FLOOR]),
            artifacts.table(artifacts.JUDGEMENTS, JUDGEMENTS[FLOOR]),
        )
    }
    found = aggregate(values, questions_table(), sample_table(list(QUESTIONS)), retrieved(), cells, known_table(KNOWN)).metrics
    assert (found["recall"], found["precision"], found["correction_rate"]) == (0.0, None, None)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


# Origins


def test_original_and_generated_questions_are_reported_apart_where_both_occur(params: Params) -> None:
    found = aggregated(params, origins={"q1": "original", "q2": "original", "q4": "generated", "q7": "generated"})
    original, generated = board(found, group="original"), board(found, group="generated")
    # q1 used all of its gold documents, q2 one of two; q4 none
    assert (original["n_planned"], original["recall"]) == (2, (2 / 2 + 1 / 2) / 2)
    assert (generated["n_planned"], generated["recall"]) == (1, 0 / 1)
    assert (board(found)["n_generated"], original["n_generated"], generated["n_generated"]) == (1, 0, 1)
    assert original["tokens_in"] == sum(row["tokens_in"] for row in ANSWERS[DENSE][:2])
    quality = {
        (row["retrieval"], row["question_type"]): row["n_questions"] for row in found.tables["retrieval_quality"].to_pylist()
    }
    assert (quality["dense", "original"], quality["dense", "generated"]) == (len({"q1", "q2"}), len({"q4", "q7"}))


@pytest.mark.parametrize("known", [{}, dict.fromkeys((*QUESTIONS, *OUTSIDE), "generated")])
def test_one_origin_of_all_questions_is_not_reported_apart(params: Params, known: dict[str, str]) -> None:
    rows = aggregated(params, origins=known).tables["leaderboard"].to_pylist()
    assert {row["question_type"] for row in rows} == {"all", "multi_hop", "single_hop", "summary"}
