import asyncio

import pytest

from rag_arena.metering import (
    Call,
    Meter,
    current_node,
    current_tier,
    labelled,
    metered,
    record_call,
    record_grading,
    record_search,
)


def call(node: str = "") -> Call:
    return Call(node, "key", "{}", "{}", "{}", 1, 1, 0.5, False)


def test_a_meter_counts_the_calls_inside_its_block_in_order() -> None:
    with metered() as meter:
        record_call(call("a"))
        record_call(call("b"))
    record_call(call("after"))
    assert [c.node for c in meter.calls] == ["a", "b"]


def test_live_searches_add_their_seconds_and_recorded_ones_are_counted() -> None:
    with metered() as meter:
        record_search(0.25)
        record_search(None)
        record_search(0.5)
        record_search(None)
        record_search(0.0)
    assert meter == Meter([], search_s=0.25 + 0.5, recorded_searches=2)


def test_grading_adds_its_seconds_apart_from_searching() -> None:
    with metered() as meter:
        record_grading(0.25)
        record_search(1.0)
        record_grading(0.5)
    assert meter == Meter([], search_s=1.0, grading_s=0.25 + 0.5)


def test_outside_any_meter_nothing_is_counted_and_nothing_fails() -> None:
    record_call(call())
    record_search(1.0)
    record_search(None)
    record_grading(1.0)
    with metered() as meter:
        pass
    assert meter == Meter()


def test_the_inner_of_two_meters_counts_and_the_outer_goes_on_after_it() -> None:
    with metered() as outer:
        record_call(call("before"))
        with metered() as inner:
            record_call(call("inside"))
        record_call(call("after"))
    assert [c.node for c in inner.calls] == ["inside"]
    assert [c.node for c in outer.calls] == ["before", "after"]


def test_a_meter_ends_with_its_block_even_when_the_block_fails() -> None:
    with pytest.raises(ValueError, match="broken"), metered() as meter:
        raise ValueError("broken")
    record_call(call())
    assert meter.calls == []


def test_questions_asked_at_once_are_counted_apart() -> None:
    async def one(name: str, turns: int) -> list[str]:
        with metered() as meter, labelled(name):
            for _ in range(turns):
                await asyncio.sleep(0)
                record_call(call(current_node()))
        return [c.node for c in meter.calls]

    async def all_of_them() -> list[list[str]]:
        return await asyncio.gather(*(one(f"q{i}", i) for i in range(1, 6)))

    assert asyncio.run(all_of_them()) == [[f"q{i}"] * i for i in range(1, 6)]


def test_tasks_started_inside_a_block_are_counted_by_its_meter() -> None:
    async def deep() -> None:
        record_call(call("deep"))

    async def work() -> Meter:
        with metered() as meter:
            await asyncio.gather(asyncio.create_task(deep()), asyncio.create_task(deep()))
        return meter

    assert [c.node for c in asyncio.run(work()).calls] == ["deep", "deep"]


def test_labels_nest_and_end_with_their_block() -> None:
    assert (current_node(), current_tier()) == ("", "")
    with labelled("outer", "llm"):
        with labelled("inner", "small_llm"):
            assert (current_node(), current_tier()) == ("inner", "small_llm")
        assert (current_node(), current_tier()) == ("outer", "llm")
    assert (current_node(), current_tier()) == ("", "")


def test_a_label_ends_even_when_its_block_fails() -> None:
    with pytest.raises(ValueError, match="broken"), labelled("node"):
        raise ValueError("broken")
    assert current_node() == ""
