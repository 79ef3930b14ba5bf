"""Differences between cells, by hand: pairs of scores, clusters of questions, p values of few sign changes."""

from typing import Any

import pytest
from scipy import stats

from rag_arena.records import Cell
from rag_arena.scoring.contrasts import METRICS, clusters_of, compare, contrast_rows, holm

APART = {f"q{i}": i for i in range(8)}  # no two questions share a document


def rows(*scores: float | None, metric: str = "recall") -> list[dict[str, Any]]:
    return [{"question_id": f"q{i}", **dict.fromkeys(METRICS), metric: score} for i, score in enumerate(scores)]


def test_cells_are_compared_on_the_questions_of_which_both_have_a_score() -> None:
    found = compare(rows(1.0, 0.5, None, 0.0), rows(0.0, 0.5, 1.0, 0.5), "recall", APART)
    assert (found["n_questions"], found["won"], found["lost"], found["tied"]) == (3, 1, 1, 1)
    assert found["mean"] == (1.0 + 0.5 + 0.0) / 3
    assert found["mean_against"] == pytest.approx((0.0 + 0.5 + 0.5) / 3)
    assert found["difference"] == pytest.approx((1.0 + 0.0 - 0.5) / 3)
    assert compare(rows(None, 1.0), rows(1.0, None), "recall", APART) == {}


@pytest.mark.parametrize(("won", "p"), [(0, 1.0), (1, 1.0), (2, 2 / 4), (5, 2 / 32), (6, 2 / 64)])
def test_p_is_the_share_of_sign_changes_that_differ_as_much(won: int, p: float) -> None:
    found = compare(rows(*[1.0] * won, 0.0), rows(*[0.0] * won, 0.0), "recall", APART)
    assert found["p"] == pytest.approx(p)


def test_questions_that_share_a_document_change_their_signs_together() -> None:
    ours, theirs = rows(1.0, 1.0, 1.0), rows(0.0, 0.0, 0.0)
    assert compare(ours, theirs, "recall", APART)["p"] == pytest.approx(2 / 2**3)
    together = compare(ours, theirs, "recall", {"q0": 0, "q1": 0, "q2": 1})
    assert together["p"] == pytest.approx(2 / 2**2)
    assert (together["n_questions"], together["n_clusters"]) == (3, 2)


def test_the_interval_spans_what_resampled_clusters_would_show() -> None:
    # of two clusters: the first twice (1 case of 4), one of each (2 of 4), the second twice (1 of 4)
    found = compare(rows(1.0, 1.0, 0.0), rows(0.0, 0.0, 0.0), "recall", {"q0": 0, "q1": 0, "q2": 1})
    assert (found["low"], found["high"]) == (0.0, 1.0)
    # sixteen questions, half of them won: the share of wins among sixteen draws, by the binomial distribution
    many = compare(rows(*[1.0] * 8, *[0.0] * 8), rows(*[0.0] * 16), "recall", {f"q{i}": i for i in range(16)})
    low, high = (stats.binom.ppf(tail, 16, 0.5) / 16 for tail in (0.025, 0.975))
    assert (many["low"], many["high"]) == (low, high)


def test_where_all_clusters_differ_alike_there_is_no_interval() -> None:
    one_cluster = dict.fromkeys(APART, 0)
    for ours, theirs, clusters in (
        (rows(0.1, 0.7), rows(0.1, 0.7), APART),
        (rows(1.0, 1.0), rows(0.0, 0.0), APART),
        (rows(0.1, 0.7, 0.4), rows(0.0, 0.3, 0.3), one_cluster),
    ):
        found = compare(ours, theirs, "recall", clusters)
        assert (found["low"], found["high"], found["detectable"]) == (None, None, None)


def test_the_detectable_difference_is_2_8_standard_errors() -> None:
    found = compare(rows(1.0, 0.0, 0.0, 1.0), rows(0.0, 0.0, 0.0, 0.0), "recall", APART)
    error = (4 * 0.5**2 / (4 - 1)) ** 0.5 / 4**0.5  # differences 1, 0, 0, 1 around 0.5
    assert found["detectable"] == pytest.approx((1.959964 + 0.841621) * error, abs=1e-5)


def test_p_values_are_adjusted_from_the_smallest_on() -> None:
    assert holm([0.03, 0.01, 0.04]) == pytest.approx([0.03 * 2, 0.01 * 3, 0.03 * 2])  # 0.04 * 1 must not be under 0.03 * 2
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_clusters_are_questions_that_share_documents_over_any_number_of_steps() -> None:
    found = clusters_of({"q0": ["a", "b"], "q1": ["c"], "q2": ["b", "d"], "q3": ["d"], "q4": [], "q5": []})
    assert found["q0"] == found["q2"] == found["q3"]
    assert len({found[q] for q in ("q0", "q1", "q4", "q5")}) == 4


def test_planned_are_each_strategy_against_vanilla_and_each_mode_against_dense() -> None:
    cells = [Cell(s, m) for s in ("vanilla", "corrective") for m in ("dense", "hybrid")] + [Cell("no_retrieval", "none")]
    scored = {cell: rows(0.0, 1.0) for cell in cells}
    found = [(r["metric"], r["varies"], r["strategy"], r["retrieval"], r["against"]) for r in contrast_rows(scored, GOLD)]
    assert found == [
        ("recall", "retrieval", "vanilla", "hybrid", "dense"),
        ("recall", "strategy", "corrective", "dense", "vanilla"),
        ("recall", "strategy", "corrective", "hybrid", "vanilla"),
        ("recall", "retrieval", "corrective", "hybrid", "dense"),
    ]
    assert list(contrast_rows({Cell("corrective", "hybrid"): rows(1.0)}, GOLD)) == []


GOLD = {f"q{i}": [f"d{i}"] for i in range(8)}


def test_each_metrics_p_values_are_adjusted_by_themselves() -> None:
    better = [{**row, "f1": 0.5} for row in rows(*[1.0] * 6)]
    worse = [{**row, "f1": 0.5} for row in rows(*[0.0] * 6)]
    scored = {Cell("vanilla", "dense"): worse, Cell("vanilla", "hybrid"): better, Cell("corrective", "hybrid"): better}
    found = {(r["metric"], r["varies"], r["strategy"]): (r["p"], r["p_holm"]) for r in contrast_rows(scored, GOLD)}
    assert found["recall", "retrieval", "vanilla"] == (pytest.approx(2 / 64), pytest.approx(2 * 2 / 64))
    assert found["recall", "strategy", "corrective"] == (1.0, 1.0)
    assert found["f1", "retrieval", "vanilla"] == (1.0, 1.0)
