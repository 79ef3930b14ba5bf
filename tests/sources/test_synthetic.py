from collections import Counter
from pathlib import Path

import pytest

from rag_arena import sources
from rag_arena.errors import ArenaError
from rag_arena.params import Sample, Synthetic
from rag_arena.sources.table import Loaded
from rag_arena.stages.download import download
from rag_arena.stages.sample import sample

WORDS = Path(__file__).parents[2] / "data/synthetic/words.txt"
SMALL = {"seed": 7, "documents": 300, "multi_hop": 40, "single_hop": 6, "summary": 6}


def dataset(path: Path = WORDS, **changes: int) -> Synthetic:
    return Synthetic.model_validate(
        {"kind": "synthetic", "name": "test", "path": str(path), "licence": "none", **SMALL, **changes}
    )


def made(path: Path = WORDS, **changes: int) -> Loaded:
    return sources.load(dataset(path, **changes))


@pytest.fixture(scope="module")
def world() -> Loaded:
    return made()


def of(world: Loaded, kind: str) -> list[dict]:
    return [row for row in world.questions if row["question_type"] == kind]


def test_there_are_as_many_documents_and_questions_of_each_type_as_asked_for(world):
    assert len(world.corpus) == 300
    assert Counter(row["question_type"] for row in world.questions) == {"multi_hop": 40, "single_hop": 6, "summary": 6}


def test_multi_hop_questions_have_two_to_four_gold_documents_in_the_proportions_of_ragrouter(world):
    # 1,336, 849 and 405 of 2,590 are 20.6, 13.1 and 6.3 of 40
    assert Counter(len(row["gold_ids"]) for row in of(world, "multi_hop")) == {2: 21, 3: 13, 4: 6}


def test_single_hop_questions_have_one_gold_document_and_summaries_five(world):
    assert {len(row["gold_ids"]) for row in of(world, "single_hop")} == {1}
    assert {len(row["gold_ids"]) for row in of(world, "summary")} == {5}


def test_a_chain_leads_from_the_entity_of_the_question_through_the_gold_documents_to_the_answer(world):
    documents = {row["doc_id"]: row for row in world.corpus}
    for row in of(world, "multi_hop"):
        chain = [documents[doc_id] for doc_id in row["gold_ids"]]
        reached = [*(document["title"] for document in chain), row["answer"]]
        assert row["question"].endswith(f" of {reached[0]}?")
        assert all(after in document["text"] for document, after in zip(chain, reached[1:], strict=True))
        assert [hop["doc_id"] for hop in row["decomposition"]] == row["gold_ids"]
        assert [hop["answer"] for hop in row["decomposition"]] == reached[1:]


def test_the_reference_of_a_summary_is_the_facts_of_its_documents_in_about_100_words(world):
    documents = {row["doc_id"]: row for row in world.corpus}
    for row in of(world, "summary"):
        gold = [documents[doc_id] for doc_id in row["gold_ids"]]
        facts = [fact if fact.endswith(".") else f"{fact}." for fact in row["answer"].split(". ")]
        assert len(row["answer"].split()) == 5 * 21
        assert len({document["title"] for document in gold}) == 1
        assert all(fact in document["text"] for fact, document in zip(facts, gold, strict=True))


def test_no_two_questions_share_a_gold_document(world):
    used = Counter(doc_id for row in world.questions for doc_id in row["gold_ids"])
    assert max(used.values()) == 1


def test_some_distractors_share_their_title_with_a_gold_document(world):
    gold = {doc_id for row in world.questions for doc_id in row["gold_ids"]}
    titles = {row["title"] for row in world.corpus if row["doc_id"] in gold}
    distractors = [row for row in world.corpus if row["doc_id"] not in gold]
    assert len([row for row in distractors if row["title"] in titles]) == -(-len(distractors) // 4)


def test_the_same_seed_gives_the_same_tables_and_another_seed_others(world):
    assert made() == world
    assert made(seed=8).corpus != world.corpus


def test_the_tables_are_artifacts_that_can_be_sampled():
    done = download(dataset())
    assert (done.corpus.num_rows, done.questions.num_rows) == (300, 40 + 6 + 6)
    evaluation, calibration = sample(done.questions, Sample(seed=1, evaluation=12, calibration=12))
    assert (evaluation.num_rows, calibration.num_rows) == (12, 12)


def test_questions_that_need_more_documents_are_refused_with_how_many(world):
    needed = 21 * 2 + 13 * 3 + 6 * 4 + 6 + 6 * 5
    with pytest.raises(ArenaError, match=f"dataset.documents is 100, but the questions need {needed}; raise it"):
        made(documents=100)
    assert len(made(documents=needed).corpus) == needed


def test_a_dataset_without_questions_is_refused():
    with pytest.raises(ArenaError, match="are all 0; ask for a question"):
        made(multi_hop=0, single_hop=0, summary=0)


def test_too_few_words_are_refused_with_the_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("one two three four five\n", encoding="utf-8")
    with pytest.raises(ArenaError, match=r"words\.txt: 5 words, too few for 652 names of three; add words"):
        made(path)


def test_words_of_any_language_will_do(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("川 海 山 森 野\n米 塩 蜜 庭 道", encoding="utf-8")
    assert any("川" in row["text"] for row in made(path).corpus)


def test_a_missing_file_of_words_is_refused(tmp_path):
    with pytest.raises(ArenaError, match=r"words\.txt: missing; dataset\.path must be a file of words"):
        made(tmp_path / "words.txt")
