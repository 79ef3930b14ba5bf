import pytest

from rag_arena.params import Chunking
from rag_arena.sources.chunks import chunked, cut

TEXT = "The Rhine rises in the Swiss Alps and flows into the North Sea near Rotterdam."


def chunks(text: str, characters: int, overlap: int = 0) -> list[str]:
    return list(cut(text, characters, overlap))


def test_a_text_no_longer_than_a_chunk_is_one_chunk():
    assert chunks(TEXT, len(TEXT)) == [TEXT]


def test_a_chunk_ends_between_words():
    assert chunks("one two three", 7) == ["one two", "three"]
    assert chunks("one two three", 8) == ["one two", "three"]
    assert chunks("one two three", 10) == ["one two", "three"]


def test_a_chunk_begins_with_the_whole_words_of_the_overlap():
    # "two" begins 7 - 4 = 3 characters into the first chunk, after the space
    assert chunks("one two three four", 9, 4) == ["one two", "two three", "four"]


def test_an_overlap_that_leaves_no_room_for_the_next_word_is_left_out():
    assert chunks("one two threefour", 9, 4) == ["one two", "threefour"]


def test_a_word_longer_than_a_chunk_is_cut():
    assert chunks("abcdefghij kl", 4) == ["abcd", "efgh", "ij", "kl"]


def test_a_text_without_spaces_is_cut_with_its_overlap():
    assert chunks("莱茵河发源于阿尔卑斯山", 6, 2) == ["莱茵河发源于", "源于阿尔卑斯", "卑斯山"]


@pytest.mark.parametrize("text", ["", " ", " \n\t "])
def test_a_text_of_spaces_has_no_chunk(text):
    assert chunks(text, 3, 1) == []


SHAPES = [TEXT, f"  {TEXT}\n\n{TEXT}  ", "x" * 50, "a " * 40, "ab\n" * 7 + "c" * 30 + "  de  f"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("characters", "overlap"), [(1, 0), (3, 2), (7, 0), (7, 3), (20, 19), (100, 10)])
def test_every_character_is_in_some_chunk_and_no_chunk_is_empty_or_too_long(shape, characters, overlap):
    # every letter another one, so that a chunk shows where in the text it stands
    text = "".join(c if c.isspace() else chr(0x4E00 + position) for position, c in enumerate(shape))
    found = chunks(text, characters, overlap)
    assert all(chunk.strip() == chunk and 0 < len(chunk) <= characters for chunk in found)
    assert all(chunk in text for chunk in found)
    assert [text.index(chunk) for chunk in found] == sorted({text.index(chunk) for chunk in found})
    assert set("".join(found)) >= set(text) - set(" \n")


def test_a_megabyte_of_text_is_cut_into_as_many_chunks_as_it_has_room_for():
    # 200,000 words of 5 characters with their space: 100 in a chunk of 500, 80 of which are new when 100 characters overlap
    text = "four " * 200_000
    assert len(chunks(text, 500)) == 200_000 / 100
    assert len(chunks(text, 500, 100)) == 200_000 / 80


def test_chunks_are_documents_numbered_from_one_with_the_title_of_their_document():
    corpus = [{"doc_id": "d", "title": "Numbers", "text": "one two three"}]
    assert chunked(corpus, Chunking(characters=7, overlap=0)) == [
        {"doc_id": "d¶1", "title": "Numbers", "text": "one two"},
        {"doc_id": "d¶2", "title": "Numbers", "text": "three"},
    ]
