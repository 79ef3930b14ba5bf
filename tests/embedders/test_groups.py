import hashlib
from itertools import pairwise

import pytest

from rag_arena.embedders.groups import groups


def digests(count: int) -> list[str]:
    return [hashlib.sha256(str(i).encode()).hexdigest() for i in range(count)]


def test_every_text_is_in_one_group_and_all_are_in_order():
    found = groups(digests(1000), 64)
    assert [digest for group in found for digest in group] == sorted(digests(1000))
    assert all(first[-1] < second[0] for first, second in pairwise(found))


def test_groups_neither_depend_on_the_order_of_the_texts_nor_on_how_often_one_occurs():
    assert groups(digests(300)[::-1] + digests(5), 32) == groups(digests(300), 32)


@pytest.mark.parametrize("count", [1, 40, 64, 90, 91, 500, 4000])
def test_groups_have_about_the_size_that_is_asked_for(count):
    found = groups(digests(count), 64)
    assert min(count, 64 / 2**0.5) <= count / len(found) <= 64 * 2**0.5


def test_few_texts_are_one_group():
    assert groups(digests(64), 64) == [tuple(sorted(digests(64)))]


def test_no_texts_have_no_groups():
    assert groups([], 64) == []


def test_a_text_more_touches_one_group_only():
    before, after = groups(digests(1000), 32), groups(digests(1001), 32)
    assert len(set(after) - set(before)) == 1
    assert len(before) == len(after)


def test_digests_that_begin_alike_share_a_group():
    # two groups of two: one bit decides, the first of 0x7 and 0x8
    low, high = ["0" * 64, "7" + "f" * 63], ["8" + "0" * 63, "f" * 64]
    assert groups([*high, *low], 2) == [tuple(low), tuple(high)]
