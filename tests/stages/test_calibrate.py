"""Calibration of one mode against hand arithmetic: real index and reranker, cosines set by hand."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from rag_arena import artifacts, embedders, rerankers
from rag_arena.errors import ArenaError
from rag_arena.params import Params, Sigmoid, validate
from rag_arena.retrieval.retriever import open_retrievers
from rag_arena.sources.labels import Row
from rag_arena.stages.calibrate import Calibrated, calibrate
from rag_arena.stages.index import index

CORPUS = [
    {"doc_id": "d1", "title": "Rhine", "text": "The Rhine begins in the Alps.", "metadata": ()},
    {"doc_id": "d2", "title": "Danube", "text": "The Danube begins in the Black Forest.", "metadata": ()},
    {"doc_id": "d3", "title": "Cheese", "text": "Cheese is made of milk.", "metadata": ()},
    {"doc_id": "d4", "title": "Elbe", "text": "The Elbe begins in Bohemia.", "metadata": ()},
]
LENGTH = {row["doc_id"]: len(f"{row['title']}\n{row['text']}") for row in CORPUS}
QUESTIONS = [
    ("q1", "Where does the Rhine begin?", ["d1"]),
    ("q2", "Where does the Danube begin?", ["d2"]),
    ("q3", "What is cheese made of?", ["d3"]),
    ("q4", "Where does the Oder begin?", []),
]
# best first, with cosines; k is 2, so that the first two are the retrieval and the last two what widening adds
GOOD, ACCEPTABLE, BAD = (
    [("d1", 0.9), ("d3", 0.2), ("d4", 0.1)],
    [("d3", 0.5), ("d2", 0.4), ("d1", 0.3), ("d4", 0.1)],
    [("d1", 0.2), ("d2", 0.1), ("d3", 0.05), ("d4", 0.01)],
)
ALL = {"q1": GOOD, "q2": ACCEPTABLE, "q3": BAD}


@pytest.fixture(scope="module")
def tuned(params: Params) -> Params:
    values = params.model_dump()
    values["calibration"] = {"k": 2, "widen_factor": 2, "thresholds": [0.6, 0.45], "high_correction_rate": 0.25}
    return validate(values, "test")


@pytest.fixture(scope="module")
def corpus() -> pa.Table:
    return artifacts.table(artifacts.CORPUS, CORPUS)


@pytest.fixture(scope="module")
def built(tuned: Params, corpus: pa.Table) -> pa.Table:
    return index(corpus, tuned.embedder, None)


class Calibration:
    """Calibrates on hits given by hand."""

    def __init__(self, params: Params, corpus: pa.Table, built: pa.Table) -> None:
        self.params, self.corpus, self.built = params, corpus, built

    def __call__(
        self,
        hits: dict[str, Sequence[tuple[str, float]]],
        labels: Sequence[Row] = (),
        gold: dict[str, list[str]] | None = None,
        params: Params | None = None,
        mode: str = "dense",
    ) -> Calibrated:
        common = {"answer": "x", "aliases": [], "question_type": "single_hop", "decomposition": [], "where": (), "origin": None}
        rows = [
            {**common, "question_id": q, "question": text, "gold_ids": (gold or {}).get(q, own)} for q, text, own in QUESTIONS
        ]
        sample = [{"question_id": q, "question_type": "single_hop", "stratum_size": 4, "stratum_weight": 1.0} for q in hits]
        found = [
            {"question_id": q, "rank": rank, "doc_id": doc_id, "score": cosine, "cosine": cosine}
            for q, ranking in hits.items()
            for rank, (doc_id, cosine) in enumerate(ranking, 1)
        ]
        return calibrate(
            mode,
            params or self.params,
            self.corpus,
            self.built,
            artifacts.table(artifacts.QUESTIONS, rows),
            artifacts.table(artifacts.SAMPLE, sample),
            artifacts.table(artifacts.HITS, found),
            labels,
        )


@pytest.fixture(scope="module")
def calibration(tuned: Params, corpus: pa.Table, built: pa.Table) -> Calibration:
    return Calibration(tuned, corpus, built)


@pytest.fixture(scope="module")
def calibrated(calibration: Calibration) -> Calibrated:
    return calibration(ALL)


def of(table: pa.Table, **keys: Any) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if all(row[key] == value for key, value in keys.items())]


def label(question_id: str, doc_id: str, verdict: str) -> Row:
    return Row(question_id, doc_id, "", "", "", verdict)


def labels_of(done: Calibrated) -> dict[str, str | None]:
    return {row["question_id"]: row["label"] for row in of(done.retrievals, scorer="cosine")}


def test_each_retrieval_has_its_best_cosine_and_a_label(calibrated: Calibrated) -> None:
    assert of(calibrated.retrievals, scorer="cosine") == [
        {"scorer": "cosine", "question_id": "q1", "best": 0.9, "label": "good"},
        {"scorer": "cosine", "question_id": "q2", "best": 0.5, "label": "acceptable"},
        {"scorer": "cosine", "question_id": "q3", "best": 0.2, "label": "bad"},
    ]


def test_the_best_relevance_is_the_rerankers_highest_score_in_the_top_k(calibrated: Calibrated, tuned: Params) -> None:
    reranker = rerankers.load(tuned.reranker, embedders.load(tuned.embedder))
    texts = [f"{row['title']}\n{row['text']}" for row in CORPUS]
    scores = reranker.scores("What is cheese made of?", texts)
    assert of(calibrated.retrievals, scorer="relevance", question_id="q3")[0]["best"] == max(scores[0], scores[1])
    assert max(scores) == scores[2], "the best document of all is not among the top k"


def test_the_sigmoid_is_fitted_on_what_the_mode_chose_from(calibrated: Calibrated) -> None:
    # three questions, for each of which all four documents are candidates; each has one gold document
    assert {(row["n_relevant"], row["n_other"]) for row in calibrated.sigmoids.to_pylist()} == {(3, 3 * 4 - 3)}
    relevance = of(calibrated.sigmoids, scorer="relevance")[0]
    assert 0 < relevance["tau"] < 1
    assert relevance["temperature"] > 0


def test_a_gold_document_that_was_not_found_counts_for_the_sigmoid(calibration: Calibration, tuned: Params) -> None:
    values = tuned.model_dump()
    values["retrieval"]["dense"]["candidates"] = 1
    done = calibration({"q1": [("d1", 0.9)]}, gold={"q1": ["d3"]}, params=validate(values, "test"))
    assert [(row["n_relevant"], row["n_other"]) for row in done.sigmoids.to_pylist()] == [(1, 1), (1, 1)]


def test_documents_that_a_reranker_dropped_count_for_the_sigmoid(calibration: Calibration) -> None:
    done = calibration({"q1": [("d1", 0.9)]}, mode="hybrid_rerank")
    assert [(row["n_relevant"], row["n_other"]) for row in done.sigmoids.to_pylist()] == [(1, 3), (1, 3)]


def test_thresholds_separate_bad_from_the_rest_and_good_from_the_rest(calibrated: Calibrated) -> None:
    counts = {"n_good": 1, "n_acceptable": 1, "n_bad": 1, "n_unlabelled": 0}
    bad, good = of(calibrated.thresholds, scorer="cosine")
    assert bad == {"scorer": "cosine", "separates": "bad", **counts, "cut": (0.2 + 0.5) / 2, "precision": 1.0, "recall": 1.0}
    assert good == {"scorer": "cosine", "separates": "good", **counts, "cut": (0.5 + 0.9) / 2, "precision": 1.0, "recall": 1.0}


def test_the_cut_for_good_is_never_under_the_one_for_bad(calibration: Calibration) -> None:
    # the good retrieval has the lowest score: alone, its cut would lie under everything
    done = calibration({"q1": [("d1", 0.1), ("d3", 0.1)], "q2": ACCEPTABLE, "q3": [("d1", 0.3), ("d2", 0.1)]})
    bad, good = of(done.thresholds, scorer="cosine")
    assert bad["cut"] == (0.3 + 0.5) / 2
    assert good["cut"] >= bad["cut"]


def test_what_a_candidate_threshold_corrects_gains_and_costs(calibrated: Calibrated) -> None:
    at_45, at_60 = of(calibrated.candidates, scorer="cosine")
    assert (at_45["threshold"], at_60["threshold"]) == (0.45, 0.6)
    # under 0.45: q3 alone. Its two further documents hold its one gold document, which the top two did not
    assert (at_45["n_corrected"], at_45["correction_rate"]) == (1, 1 / 3)
    assert (at_45["precision"], at_45["recall"]) == (1.0, 1.0)
    assert at_45["gain_widen"] == (0 + 0 + 1) / 3
    assert at_45["documents_widen"] == 2 / 3
    assert at_45["characters_widen"] == (LENGTH["d3"] + LENGTH["d4"]) / 3
    # under 0.60: q2 too, whose gold document was there already
    assert (at_60["n_corrected"], at_60["correction_rate"]) == (2, 2 / 3)
    assert (at_60["precision"], at_60["recall"]) == (1 / 2, 1.0)
    assert at_60["gain_widen"] == (0 + 0 + 1) / 3
    assert at_60["documents_widen"] == (2 + 2) / 3
    assert at_60["characters_widen"] == (LENGTH["d1"] + LENGTH["d4"] + LENGTH["d3"] + LENGTH["d4"]) / 3


def test_the_other_lane_adds_what_it_finds_beside_the_top_k(calibration: Calibration, tuned: Params) -> None:
    done = calibration({"q3": BAD})
    lane = open_retrievers(tuned, calibration.corpus, calibration.built).second_lane("dense")
    new = [hit.doc_id for hit in lane.search("What is cheese made of?", 4, frozenset({"d1", "d2"}))]
    assert "d3" in new
    [row] = of(done.candidates, scorer="cosine", threshold=0.45)
    assert row["gain_other_lane"] == 1.0
    assert row["documents_other_lane"] == len(new)
    assert row["characters_other_lane"] == sum(LENGTH[doc_id] for doc_id in new)


def test_candidates_on_relevance_are_probabilities(calibrated: Calibrated) -> None:
    sigmoid = of(calibrated.sigmoids, scorer="relevance")[0]
    through = Sigmoid(tau=sigmoid["tau"], temperature=sigmoid["temperature"])
    best = [row["best"] for row in of(calibrated.retrievals, scorer="relevance")]
    for row in of(calibrated.candidates, scorer="relevance"):
        assert row["n_corrected"] == sum(rerankers.probability(score, through) < row["threshold"] for score in best)


def test_a_search_that_found_nothing_is_bad_and_always_corrected(calibration: Calibration) -> None:
    done = calibration({"q1": GOOD, "q3": []})
    assert of(done.retrievals, scorer="cosine", question_id="q3")[0] == {
        "scorer": "cosine",
        "question_id": "q3",
        "best": None,
        "label": "bad",
    }
    assert [row["n_corrected"] for row in of(done.candidates, scorer="cosine")] == [1, 1]
    bad, _ = of(done.thresholds, scorer="cosine")
    assert (bad["cut"], bad["recall"]) == (0.9, 1.0)


# Chunks


CHUNKS = [
    {"doc_id": "d1¶1", "title": "Rhine", "text": "The Rhine begins in the Alps."},
    {"doc_id": "d1¶2", "title": "Rhine", "text": "Its cheese is made of milk."},
    {"doc_id": "d2¶1", "title": "Danube", "text": "The Danube begins in the Black Forest."},
]


@pytest.fixture(scope="module")
def of_chunks(tuned: Params) -> Calibration:
    cut = artifacts.table(artifacts.CORPUS, ({**row, "metadata": ()} for row in CHUNKS))
    return Calibration(tuned, cut, index(cut, tuned.embedder, None))


def test_a_chunk_of_a_gold_document_holds_evidence(of_chunks: Calibration) -> None:
    done = of_chunks({"q1": [("d1¶2", 0.9)], "q2": [("d1¶1", 0.5), ("d2¶1", 0.4)]})
    assert labels_of(done) == {"q1": "good", "q2": "acceptable"}


def test_of_a_gold_document_that_was_not_found_its_nearest_chunk_counts_for_the_sigmoid(
    of_chunks: Calibration, tuned: Params
) -> None:
    values = tuned.model_dump()
    values["retrieval"]["dense"]["candidates"] = 1
    done = of_chunks({"q2": [("d2¶1", 0.9)]}, gold={"q2": ["d1", "d2"]}, params=validate(values, "test"))
    assert [(row["n_relevant"], row["n_other"]) for row in done.sigmoids.to_pylist()] == [(1 + 1, 0), (1 + 1, 0)]


def test_a_label_is_about_its_chunk_and_a_yes_about_its_document_too(of_chunks: Calibration) -> None:
    hits = {"q1": [("d1¶1", 0.9), ("d1¶2", 0.5)]}
    assert labels_of(of_chunks(hits, [label("q1", "d1¶1", "no")])) == {"q1": "acceptable"}
    assert labels_of(of_chunks(hits, [label("q1", "d1¶2", "yes")], gold={"q1": ["d2"]})) == {"q1": "good"}


# Kinds of which there is none


def test_without_a_bad_retrieval_nothing_lies_under_the_threshold(calibration: Calibration) -> None:
    bad, _ = of(calibration({"q1": GOOD, "q2": ACCEPTABLE}).thresholds, scorer="cosine")
    assert bad["cut"] == 0.5
    assert (bad["precision"], bad["recall"]) == (None, None)


def test_without_calibration_questions_there_is_nothing_to_say(calibration: Calibration) -> None:
    done = calibration({})
    assert done.retrievals.num_rows == done.candidates.num_rows == 0
    assert {row["cut"] for row in done.thresholds.to_pylist()} == {None}
    assert {row["tau"] for row in done.sigmoids.to_pylist()} == {None}


def test_without_gold_documents_and_labels_scores_are_known_and_nothing_else(calibration: Calibration) -> None:
    done = calibration({"q4": ACCEPTABLE})
    assert of(done.retrievals, scorer="cosine") == [{"scorer": "cosine", "question_id": "q4", "best": 0.5, "label": None}]
    assert [(row["n_unlabelled"], row["cut"]) for row in done.thresholds.to_pylist()] == [(1, None)] * 4
    assert [(row["n_relevant"], row["n_other"]) for row in done.sigmoids.to_pylist()] == [(0, 0), (0, 0)]
    assert of(done.candidates, scorer="relevance") == []
    [_, at_60] = of(done.candidates, scorer="cosine")
    assert (at_60["correction_rate"], at_60["precision"], at_60["gain_widen"]) == (1.0, None, None)


# Labels of the user's


def test_labels_make_gold_documents_where_the_dataset_has_none(calibration: Calibration) -> None:
    said = [label("q4", "d3", "no"), label("q4", "d2", "yes")]
    done = calibration({"q4": ACCEPTABLE}, said)
    assert labels_of(done) == {"q4": "acceptable"}
    assert {(row["n_relevant"], row["n_other"]) for row in done.sigmoids.to_pylist()} == {(1, 1)}, "others are unknown"


def test_labels_override_gold_documents_either_way(calibration: Calibration) -> None:
    assert labels_of(calibration(ALL, [label("q1", "d1", "no")])) == {"q1": "bad", "q2": "acceptable", "q3": "bad"}
    assert labels_of(calibration(ALL, [label("q2", "d3", "yes")])) == {"q1": "good", "q2": "good", "q3": "bad"}


def test_a_row_without_a_label_changes_nothing(calibration: Calibration, calibrated: Calibrated) -> None:
    done = calibration(ALL, [label("q1", "d1", ""), label("q9", "d9", "")])
    assert [done.retrievals, done.thresholds, done.candidates] == [
        calibrated.retrievals,
        calibrated.thresholds,
        calibrated.candidates,
    ]


def test_gold_recall_counts_labelled_documents_too(calibration: Calibration) -> None:
    # q3: d4, which widening finds, is gold by label; before 0 of {d3, d4}, after 2 of 2
    [row] = of(calibration({"q3": BAD}, [label("q3", "d4", "yes")]).candidates, scorer="cosine", threshold=0.45)
    assert row["gain_widen"] == 2 / 2 - 0 / 2


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (label("q9", "d1", "yes"), "data/labels.csv: labels question 'q9', which the dataset does not have; delete the row"),
        (label("q1", "d9", "no"), "data/labels.csv: labels document 'd9', which the dataset does not have; delete the row"),
    ],
)
def test_a_label_of_what_the_dataset_does_not_have_is_refused(calibration: Calibration, row: Row, line: str) -> None:
    with pytest.raises(ArenaError) as caught:
        calibration(ALL, [row])
    assert str(caught.value) == line
