import pytest

from rag_arena.strategies.sentences import sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Rhine is long. It is wet! Is it? Yes", ["The Rhine is long.", "It is wet!", "Is it?", "Yes"]),
        ("One line\nand another", ["One line", "and another"]),
        (
            'He said "It is." Then he left (for good.) Nobody saw.',
            ['He said "It is."', "Then he left (for good.)", "Nobody saw."],
        ),
        ("", []),
        (" \n ", []),
    ],
)
def test_a_sentence_ends_at_its_mark_or_at_the_end_of_the_line(text: str, expected: list[str]):
    assert sentences(text) == expected


@pytest.mark.parametrize(
    "one",
    [
        "It is 3.14 metres.",
        "Dr. Smith met J. R. R. Tolkien in St. Paul.",
        "The U.S. Senate met.",
        "It has vitamins, e.g. C and D.",
    ],
)
def test_the_point_of_a_number_an_initial_or_an_abbreviation_ends_nothing(one: str):
    assert sentences(one) == [one]


def test_no_character_but_white_space_is_lost():
    text = 'A (b.) "C." D? e! F... G.\nH Mr. I. J'
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
