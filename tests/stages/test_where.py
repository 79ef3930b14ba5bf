"""Questions that may only find documents whose metadata agree: in the retrieve stage, in calibration and in every cell."""

import json

import pyarrow as pa
import pytest

from rag_arena import artifacts, strategies
from rag_arena.llm.ledger import Ledger
from rag_arena.params import Params, validate
from rag_arena.records import Cell, Metadata
from rag_arena.sources.labels import Row
from rag_arena.stages.calibrate import calibrate
from rag_arena.stages.index import index
from rag_arena.stages.retrieve import retrieve
from rag_arena.stages.run import Inputs
from tests.project import CORPUS
from tests.stages.test_run import by_id, play
from tests.strategies.test_worst_model import everything, raw, variants
from tests.stub import Answer, Body, Stub, sensible, words

OF = {"a": {"d1", "d3"}, "b": {"d2", "d4"}}  # the Rhine and cheese, the Danube and the Elbe
TENANT = {doc_id: tenant for tenant, doc_ids in OF.items() for doc_id in doc_ids}
RHINE = "Where does the Rhine begin?"
ASKED = {"q_a": (RHINE, "a"), "q_b": (RHINE, "b"), "q_c": ("What is cheese made of?", "b")}
__all__ = ["everything"]


def of(tenant: str) -> Metadata:
    return (("tenant", tenant),)


@pytest.fixture(scope="module")
def corpus() -> pa.Table:
    return artifacts.table(artifacts.CORPUS, [{**row, "metadata": of(TENANT[row["doc_id"]])} for row in CORPUS])


@pytest.fixture(scope="module")
def questions() -> pa.Table:
    common = {"answer": "x", "aliases": [], "question_type": "single_hop", "gold_ids": [], "decomposition": [], "origin": None}
    rows = [{**common, "question_id": q, "question": text, "where": of(tenant)} for q, (text, tenant) in ASKED.items()]
    return artifacts.table(artifacts.QUESTIONS, rows)


@pytest.fixture(scope="module")
def sample() -> pa.Table:
    strata = {"question_type": "single_hop", "stratum_size": 3, "stratum_weight": 1.0}
    return artifacts.table(artifacts.SAMPLE, [{"question_id": question_id, **strata} for question_id in ASKED])


@pytest.fixture(scope="module")
def built(everything: Params, corpus: pa.Table) -> pa.Table:
    return index(corpus, everything.embedder, None)


@pytest.fixture(scope="module")
def inputs(everything: Params, corpus: pa.Table, questions: pa.Table, sample: pa.Table, built: pa.Table) -> Inputs:
    hits, _ = retrieve("hybrid", everything, corpus, built, questions)
    return Inputs(questions, sample, corpus, built, hits)


@pytest.mark.parametrize("backend", ["local", "edge"])
@pytest.mark.parametrize("mode", ["dense", "sparse", "hybrid", "hybrid_rerank"])
def test_the_first_pass_of_every_mode_finds_what_agrees_and_nothing_else(
    params: Params, corpus: pa.Table, questions: pa.Table, built: pa.Table, mode: str, backend: str
) -> None:
    values = params.model_dump() | {"store": {"backend": backend}}
    values["retrieval"]["hybrid_rerank"]["relevance_threshold"] = 0.0
    hits, _ = retrieve(mode, validate(values, "test"), corpus, built, questions)
    found = {
        question_id: {row["doc_id"] for row in hits.to_pylist() if row["question_id"] == question_id} for question_id in ASKED
    }
    if mode == "sparse":  # which finds documents that share a word
        assert found == {"q_a": {"d1"}, "q_b": OF["b"], "q_c": set()}
    else:
        assert found == {"q_a": OF["a"], "q_b": OF["b"], "q_c": OF["b"]}


@pytest.mark.parametrize("strategy", [name for name in strategies.known() if name != "no_retrieval"])
def test_no_strategy_under_any_of_its_options_sees_a_document_that_does_not_agree(
    strategy: str, everything: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    def behave(body: Body) -> Answer:
        """About the Rhine it says No to everything, so that loops go round."""
        said = words("No", 1.0) if "Rhine" in json.dumps(body) else sensible(body)
        return raw(said) if "prompt" in body else said

    stub.behave = behave
    seen: set[str] = set()
    for settings in variants(strategy, everything):
        changes = {f"strategy.{strategy}": settings.model_dump(), "run.max_failed_share": 1.0}
        done = by_id(play(Cell(strategy, "hybrid"), everything, inputs, stub, ledger, changes).answers)
        for question_id, (_, tenant) in ASKED.items():
            assert set(done[question_id]["retrieved_ids"]) <= OF[tenant], settings
            seen.update(done[question_id]["retrieved_ids"])
    assert seen


def test_an_answer_is_not_remembered_for_a_question_held_to_other_documents(
    everything: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = lambda body: words("No" if "common knowledge" in body["messages"][-1]["content"] else "Yes", 1.0)
    [settings, *_] = variants("adaptive_self_rag", everything)
    changes = {"strategy.adaptive_self_rag": settings.model_dump() | {"reuse_threshold": 0.95}}
    done = by_id(play(Cell("adaptive_self_rag", "hybrid"), everything, inputs, stub, ledger, changes).answers)
    assert done["q_a"]["llm_calls"] == done["q_b"]["llm_calls"] > 0


def test_calibration_knows_only_documents_that_agree(
    everything: Params, inputs: Inputs, corpus: pa.Table, built: pa.Table, questions: pa.Table, sample: pa.Table
) -> None:
    said = [Row("q_a", "d1", "", "", "", "yes"), Row("q_b", "d2", "", "", "", "no")]
    done = calibrate("hybrid", everything, corpus, built, questions, sample, inputs.hits, said)
    [row] = [row for row in done.candidates.to_pylist() if (row["scorer"], row["threshold"]) == ("cosine", 0.75)]
    assert row["documents_widen"] == 0
    assert row["documents_other_lane"] == 0, "the first pass has found every document that agrees"
