"""A build of the index that is stopped, run again, or done after the corpus changed: the result is that of one from scratch."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rag_arena import artifacts, embedders
from rag_arena.artifacts import Parts
from rag_arena.embedders import Embedded, Weights
from rag_arena.stages.index import index


class InCompany:
    """An embedder whose vectors depend on the texts that they are computed with, as a GPU's do."""

    idf = False

    def __init__(self, alone: bool = False, stops_after: int | None = None, name: str = "one") -> None:
        self.identity = name
        self.alone = alone
        self.group_size = 4
        self.computed: list[tuple[str, ...]] = []
        self._stops_after = stops_after

    def documents(self, groups: Iterable[Sequence[str]]) -> Iterator[list[Embedded]]:
        for texts in groups:
            if len(self.computed) == self._stops_after:
                raise KeyboardInterrupt
            self.computed.append(tuple(texts))
            yield [self._embedded(text, () if self.alone else texts) for text in texts]

    def _embedded(self, text: str, company: Sequence[str]) -> Embedded:
        seed = hashlib.sha256("\n".join([self.identity, text, *company]).encode()).digest()
        return Embedded(np.frombuffer(seed, np.uint8).astype(np.float32), Weights([seed[0]], [0.5]))

    @property
    def texts(self) -> int:
        return sum(map(len, self.computed))


def corpus(texts: Iterable[str]) -> pa.Table:
    rows = [{"doc_id": f"d{i:02}", "title": "", "text": text, "metadata": []} for i, text in enumerate(texts)]
    return artifacts.table(artifacts.CORPUS, rows)


TEXTS = [f"text {i}" for i in range(32)]


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path / "parts", artifacts.VECTORS)


@pytest.fixture
def build(params, monkeypatch: pytest.MonkeyPatch):
    def built(embedder: InCompany, texts: Sequence[str] = TEXTS, previous: pa.Table | None = None, parts=None) -> pa.Table:
        monkeypatch.setattr(embedders, "load", lambda *_: embedder)
        return index(corpus(texts), params.embedder, previous, parts)

    return built


def stopped(build, embedder: InCompany, parts: Parts) -> InCompany:
    with pytest.raises(KeyboardInterrupt):
        build(embedder, parts=parts)
    return embedder


@pytest.mark.parametrize("alone", [False, True])
def test_what_was_embedded_before_a_stop_is_not_embedded_again(build, parts, alone):
    before = stopped(build, InCompany(alone, stops_after=3), parts)
    after = InCompany(alone)
    resumed = build(after, parts=parts)
    assert len(before.computed) == 3
    assert set(before.computed).isdisjoint(after.computed)
    assert before.texts + after.texts == len(TEXTS)
    assert resumed.equals(build(InCompany(alone)))


def test_what_another_embedder_kept_is_not_used(build, parts):
    stopped(build, InCompany(stops_after=3), parts)
    other = InCompany(name="another")
    assert build(other, parts=parts).equals(build(InCompany(name="another")))
    assert other.texts == len(TEXTS)


def test_a_torn_part_is_computed_again(build, parts, tmp_path):
    before = stopped(build, InCompany(stops_after=2), parts)
    torn = sorted((tmp_path / "parts").iterdir())[0]
    torn.write_bytes(torn.read_bytes()[:100])
    after = InCompany()
    assert build(after, parts=parts).equals(build(InCompany()))
    assert len(set(before.computed) & set(after.computed)) == 1


def test_parts_are_gone_when_they_are_cleared(build, parts, tmp_path):
    build(InCompany(), parts=parts)
    parts.clear()
    assert not (tmp_path / "parts").exists()
    parts.clear()


@pytest.mark.parametrize(
    "changed", [[*TEXTS[:-1], "another text"], [*TEXTS, "one more"], TEXTS[:-1]], ids=["other", "more", "fewer"]
)
def test_after_a_change_of_one_text_only_its_groups_are_embedded_again(build, changed):
    previous = build(InCompany())
    embedder = InCompany()
    assert build(embedder, changed, previous).equals(build(InCompany(), changed))
    assert embedder.texts < len(TEXTS) / 2


def test_where_a_vector_depends_on_its_text_alone_one_changed_text_is_one_text_to_embed(build):
    previous = build(InCompany(alone=True))
    embedder = InCompany(alone=True)
    assert build(embedder, [*TEXTS[:-1], "another text"], previous).equals(
        build(InCompany(alone=True), [*TEXTS[:-1], "another text"])
    )
    assert embedder.computed == [("another text",)]


def test_documents_of_one_text_are_embedded_once(build):
    embedder = InCompany()
    built = build(embedder, ["same", "same", "other"])
    assert embedder.texts == 2
    assert built["dense"][0] == built["dense"][1]
