"""The shipped titles and questions of `experiment=wikipedia`, on a wiki that has a page for each title."""

import pyarrow.compute as pc
import pytest
import yaml

from rag_arena.compose import compose
from rag_arena.llm.ledger import Ledger
from rag_arena.llm.lookups import Lookups
from rag_arena.params import Params, validate
from rag_arena.records import documents_of
from rag_arena.stages.download import Downloaded, download
from rag_arena.stages.preflight import check_calibration
from rag_arena.stages.sample import sample
from tests.conftest import ROOT
from tests.stub import Stub
from tests.webstub import Wiki

TITLES = [line for line in (ROOT / "data/articles/titles.txt").read_text().splitlines() if not line.startswith("#")]
TEXT = "A page of about a thousand characters. " * 25


@pytest.fixture
def composed(stub: Stub) -> Params:
    params = validate(yaml.safe_load(compose(ROOT / "conf", ["experiment=wikipedia"])), "conf")
    values = params.model_dump()
    values["dataset"] |= {"path": str(ROOT / params.dataset.path), "base_url": stub.url.removesuffix("/v1") + "/w/api.php"}
    return validate(values, "test")


@pytest.fixture
def made(composed: Params, stub: Stub, ledger: Ledger) -> Downloaded:
    stub.behave = Wiki(dict.fromkeys(TITLES, TEXT))
    return download(composed.dataset, lambda: Lookups(ledger, composed.llm.transport))


def test_every_title_is_a_document_in_chunks_of_at_most_500_characters(made: Downloaded) -> None:
    assert documents_of(made.corpus["doc_id"].to_pylist()) == sorted(TITLES)
    assert pc.max(pc.utf8_length(made.corpus["text"])).as_py() <= 500
    assert made.notes == []


def test_thirty_questions_have_two_to_an_article_and_all_are_asked(composed: Params, made: Downloaded) -> None:
    gold = [doc_id for ids in made.questions["gold_ids"].to_pylist() for doc_id in ids]
    assert sorted(gold) == sorted([*TITLES, *TITLES])
    evaluation, calibration = sample(made.questions, composed.sample)
    assert (evaluation.num_rows, calibration.num_rows) == (30, 0)


def test_the_grid_needs_no_calibration(composed: Params) -> None:
    check_calibration(composed, any_gold=False, labels=[])
