"""What holds for every kind of dataset, shown on one."""

import json
from pathlib import Path
from typing import Any

import pytest

from rag_arena import sources
from rag_arena.errors import ArenaError
from rag_arena.params import Chunking, RagRouter

TEXT = "The Rhine rises in the Alps. It flows into the North Sea."
QUESTION = {"id": "q", "question": "?", "answer": "!", "type": "single_hop", "supporting_facts": [{"text": TEXT}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Corpus.json").write_text(json.dumps({"id": "d", "title": "Rhine", "context": TEXT}))
    (tmp_path / "Question.json").write_text(json.dumps(QUESTION))
    return tmp_path


def dataset(folder: Path, **more: Any) -> RagRouter:
    return RagRouter(kind="ragrouter", name="test", path=str(folder), licence="none", **more)


def test_without_chunking_documents_are_whole(folder):
    assert [row["text"] for row in sources.load(dataset(folder)).corpus] == [TEXT]


def test_with_chunking_documents_are_chunks_and_gold_documents_stay_documents(folder):
    loaded = sources.load(dataset(folder, chunking=Chunking(characters=30, overlap=0)))
    assert [(row["doc_id"], row["title"], row["text"]) for row in loaded.corpus] == [
        ("d¶1", "Rhine", "The Rhine rises in the Alps."),
        ("d¶2", "Rhine", "It flows into the North Sea."),
    ]
    assert loaded.questions[0]["gold_ids"] == ["d"], "found by its whole text"
    assert loaded.unresolved == []


@pytest.mark.parametrize("place", [".", "data", "./data/"])
def test_a_folder_that_holds_what_is_made_from_it_is_refused(folder, monkeypatch, place):
    monkeypatch.chdir(folder)
    (folder / "data").mkdir()
    with pytest.raises(ArenaError) as caught:
        sources.check(dataset(Path(place)))
    assert str(caught.value).endswith(": holds data/corpus.parquet, made from it; put the dataset into a folder of its own")
