import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from rag_arena import artifacts
from rag_arena.params import RagRouter
from rag_arena.scoring.answers import contains, normalise
from rag_arena.sources.ragrouter import load
from rag_arena.stages.sample import sample

DEMO = Path(__file__).parent.parent / "data" / "demo"


@pytest.fixture(scope="module")
def loaded():
    return load(RagRouter(kind="ragrouter", name="demo", path=str(DEMO), licence="CC-BY-4.0"))


@pytest.fixture(scope="module")
def passages(loaded) -> dict[str, dict]:
    return {row["doc_id"]: row for row in loaded.corpus}


@pytest.fixture(scope="module")
def raw() -> list[dict]:
    return [json.loads(line) for line in (DEMO / "Question.json").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def short(loaded) -> list[dict]:
    return [row for row in loaded.questions if row["question_type"] != "summary"]


@pytest.fixture(scope="module")
def multi_hop(loaded) -> list[dict]:
    return [row for row in loaded.questions if row["question_type"] == "multi_hop"]


def holds(text: str, phrase: str) -> bool:
    return contains(text, [phrase]) == 1


def full_text(passage: dict) -> str:
    return f"{passage['title']}\n{passage['text']}"


def repeated(texts: Iterable[str]) -> list[str]:
    return [text for text, times in Counter(map(normalise, texts)).items() if times > 1]


def test_there_are_at_least_300_passages(passages):
    assert len(passages) >= 300


def test_every_passage_has_a_title(passages):
    assert [i for i, row in passages.items() if not row["title"]] == []


def test_every_passage_has_40_to_120_words(passages):
    assert {i: n for i, row in passages.items() if not 40 <= (n := len(row["text"].split())) <= 120} == {}


def test_no_two_passages_have_the_same_text(passages):
    assert repeated(row["text"] for row in passages.values()) == []


def test_at_least_six_groups_of_passages_share_one_title(passages):
    assert len(repeated(row["title"] for row in passages.values())) >= 6


def test_there_are_at_least_72_questions(loaded):
    assert len(loaded.questions) >= 72


def test_half_of_the_questions_are_multi_hop_and_a_quarter_each_single_hop_and_summary(loaded):
    total = len(loaded.questions)
    types = Counter(row["question_type"] for row in loaded.questions)
    assert types == {"multi_hop": total / 2, "single_hop": total / 4, "summary": total / 4}


def test_questions_of_two_three_and_four_hops_occur(multi_hop):
    assert {len(row["gold_ids"]) for row in multi_hop} == {2, 3, 4}


@pytest.mark.parametrize(("kind", "size"), [("single_hop", 1), ("summary", 5)])
def test_single_hop_questions_have_one_gold_passage_and_summaries_five(loaded, kind, size):
    assert {len(row["gold_ids"]) for row in loaded.questions if row["question_type"] == kind} == {size}


def test_no_two_questions_are_the_same(loaded):
    assert repeated(row["question"] for row in loaded.questions) == []


def test_at_least_a_dozen_questions_have_aliases(loaded):
    assert sum(bool(row["aliases"]) for row in loaded.questions) >= 12


def test_no_alias_repeats_the_answer(short):
    aliases = [(q, alias) for q in short for alias in q["aliases"]]
    assert [(q["question_id"], alias) for q, alias in aliases if normalise(alias) in ("", normalise(q["answer"]))] == []


def test_every_supporting_fact_is_found_and_none_stands_twice(loaded, raw):
    assert loaded.unresolved == []
    assert [len(row["gold_ids"]) for row in loaded.questions] == [len(row["supporting_facts"]) for row in raw]


def test_every_gold_id_is_a_passage_whose_text_is_quoted(passages, raw):
    facts = [(row["id"], str(fact["doc_id"]), fact["text"]) for row in raw for fact in row["supporting_facts"]]
    assert [(question, doc_id) for question, doc_id, text in facts if passages[doc_id]["text"] != text] == []


def test_every_short_answer_stands_in_its_last_gold_passage(passages, short):
    assert [q["question_id"] for q in short if not holds(passages[q["gold_ids"][-1]]["text"], q["answer"])] == []


def test_no_short_answer_stands_in_an_earlier_gold_passage(passages, short):
    earlier = [(q, doc_id) for q in short for doc_id in q["gold_ids"][:-1]]
    assert [(q["question_id"], i) for q, i in earlier if holds(full_text(passages[i]), q["answer"])] == []


def test_no_short_answer_stands_in_its_question(short):
    assert [q["question_id"] for q in short if holds(q["question"], q["answer"])] == []


def test_the_hops_follow_the_gold_passages(multi_hop):
    assert [q["question_id"] for q in multi_hop if [hop["doc_id"] for hop in q["decomposition"]] != q["gold_ids"]] == []


def test_the_last_hop_ends_in_the_answer(multi_hop):
    assert [q["question_id"] for q in multi_hop if q["decomposition"][-1]["answer"] != q["answer"]] == []


def test_the_number_of_hops_is_told(raw):
    assert [q["id"] for q in raw if q["type"] != "summary" and q["hops"] != len(q["supporting_facts"])] == []


def test_each_hops_answer_stands_in_its_passage(passages, multi_hop):
    hops = [(q["question_id"], hop) for q in multi_hop for hop in q["decomposition"]]
    assert [(q, hop["answer"]) for q, hop in hops if not holds(passages[hop["doc_id"]]["text"], hop["answer"])] == []


def test_each_bridging_entity_stands_in_the_next_passage(passages, multi_hop):
    steps = [(hop, after) for q in multi_hop for hop, after in zip(q["decomposition"], q["decomposition"][1:], strict=False)]
    assert [hop for hop, after in steps if not holds(full_text(passages[after["doc_id"]]), hop["answer"])] == []


def test_no_bridging_entity_stands_in_the_question(multi_hop):
    bridges = [(q, hop["answer"]) for q in multi_hop for hop in q["decomposition"][:-1]]
    assert [(q["question_id"], entity) for q, entity in bridges if holds(q["question"], entity)] == []


def test_each_later_hop_refers_to_the_answer_before_it(multi_hop):
    later = [(number, hop) for q in multi_hop for number, hop in enumerate(q["decomposition"][1:], 1)]
    assert [hop["question"] for number, hop in later if f"#{number}" not in hop["question"]] == []


def test_every_summary_reference_has_80_to_125_words(loaded):
    summaries = [row for row in loaded.questions if row["question_type"] == "summary"]
    assert {q["question_id"]: n for q in summaries if not 80 <= (n := len(q["answer"].split())) <= 125} == {}


def test_the_splits_of_the_default_experiment_can_be_drawn(loaded, params):
    table = artifacts.table(artifacts.QUESTIONS, ({**row, "where": (), "origin": None} for row in loaded.questions))
    evaluation, calibration = sample(table, params.sample)
    assert (evaluation.num_rows, calibration.num_rows) == (params.sample.evaluation, params.sample.calibration)
