"""The ledger, against real SQLite files."""

import json
import multiprocessing
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import Entry, Ledger, Stats, call_key, canonical, default_path

KEYS = [f"key{i}" for i in range(20)]


def entry(
    key: str, reply: str = '"reply"', endpoint: str = '"e"', tokens: tuple[int, int] = (3, 2), latency_s: float = 0.5
) -> Entry:
    return Entry(key, endpoint, '"request"', reply, *tokens, latency_s)


def put_all(job: tuple[Path, str]) -> list[str]:
    path, reply = job
    ledger = Ledger(path)
    kept = [ledger.put(entry(key, reply)).reply for key in KEYS]
    ledger.close()
    return kept


def open_together(start: "threading.Barrier") -> None:
    global together
    together = start


def open_fresh(path: Path) -> str | None:
    together.wait(30)
    try:
        Ledger(path).close()
    except ArenaError as error:
        return str(error)
    return None


def test_an_unknown_key_is_none(ledger: Ledger) -> None:
    assert ledger.get("nowhere") is None


def test_what_was_put_is_got_field_by_field(ledger: Ledger) -> None:
    written = Entry("k", '{"model":"m"}', '{"q":"é"}', '{"a":"日本"}', 11, 7, 0.125)
    assert ledger.put(written) == written
    assert ledger.get("k") == written


def test_the_first_row_wins_and_is_what_the_second_writer_gets_back(ledger: Ledger) -> None:
    first, second = entry("k", '"first"'), entry("k", '"second"', latency_s=9.0)
    ledger.put(first)
    assert ledger.put(second) == first
    assert ledger.get("k") == first


def test_calls_survive_closing_and_opening_again(tmp_path: Path) -> None:
    opened = Ledger(tmp_path / "l.sqlite")
    opened.put(entry("k"))
    opened.close()
    again = Ledger(tmp_path / "l.sqlite")
    assert again.get("k") == entry("k")
    again.close()


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    Ledger(tmp_path / "a" / "b" / "l.sqlite").close()
    assert (tmp_path / "a" / "b" / "l.sqlite").is_file()


def test_load_counts_only_what_is_new(ledger: Ledger) -> None:
    ledger.put(entry("k1", '"kept"'))
    assert ledger.load([entry("k1"), entry("k2"), entry("k3"), entry("k3")]) == len({"k2", "k3"})
    assert ledger.get("k1") == entry("k1", '"kept"')


def test_loading_nothing_adds_nothing(ledger: Ledger) -> None:
    assert ledger.load([]) == 0


def test_loading_twice_adds_nothing_the_second_time(ledger: Ledger) -> None:
    entries = [entry(key) for key in KEYS]
    assert [ledger.load(entries), ledger.load(entries)] == [len(KEYS), 0]


def test_a_load_with_one_bad_entry_stores_none_of_it(ledger: Ledger) -> None:
    with pytest.raises((UnicodeEncodeError, ArenaError)):
        ledger.load([entry("good"), entry("half an emoji", "\ud83d")])
    assert ledger.get("good") is None


def test_the_ledger_stays_usable_after_an_entry_that_cannot_be_stored(ledger: Ledger) -> None:
    with pytest.raises((UnicodeEncodeError, ArenaError)):
        ledger.put(entry("half an emoji", "\ud83d"))
    assert ledger.put(entry("next")) == entry("next")


def test_stats_add_up_calls_tokens_and_seconds_per_endpoint_by_name(ledger: Ledger) -> None:
    ledger.load(
        [
            entry("k1", endpoint='"b"', tokens=(10, 1), latency_s=0.5),
            entry("k2", endpoint='"a"', tokens=(20, 2), latency_s=0.25),
            entry("k3", endpoint='"b"', tokens=(30, 3), latency_s=1.0),
        ]
    )
    assert ledger.stats() == [Stats('"a"', 1, 20, 2, 0.25), Stats('"b"', 2, 10 + 30, 1 + 3, 0.5 + 1.0)]


def test_stats_of_an_empty_ledger_are_empty(ledger: Ledger) -> None:
    assert ledger.stats() == []


def test_threads_with_a_ledger_each_agree_on_every_key(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(put_all, [(path, f'"thread {i}"') for i in range(8)]))
    assert all(replies == kept[0] for replies in kept)


def test_threads_that_share_one_ledger_agree_on_every_key(ledger: Ledger) -> None:
    start = threading.Barrier(8)

    def work(i: int) -> list[str]:
        start.wait(10)
        return [ledger.put(entry(key, f'"thread {i}"')).reply for key in KEYS]

    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(work, range(8)))
    assert all(replies == kept[0] for replies in kept)


def test_processes_agree_on_every_key(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        kept = pool.map(put_all, [(path, f'"process {i}"') for i in range(6)], chunksize=1)
    assert all(replies == kept[0] for replies in kept)
    ledger = Ledger(path)
    assert [ledger.get(key).reply for key in KEYS] == kept[0]  # type: ignore[union-attr]
    assert ledger.stats()[0].calls == len(KEYS)
    ledger.close()


def test_processes_may_open_a_new_ledger_at_the_same_moment(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(4, open_together, (spawn.Barrier(4),)) as pool:
        errors = pool.map(open_fresh, [tmp_path / f"{i}.sqlite" for i in range(60) for _ in range(4)], chunksize=1)
    assert [error for error in errors if error] == []


def test_opening_waits_for_a_process_that_is_just_creating_the_file(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    creating = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    creating.execute("CREATE TABLE other (a)")
    creating.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.1, creating.execute, ["ROLLBACK"])
    release.start()
    try:
        opened = Ledger(path)
    finally:
        release.join()
        creating.close()
    assert opened.put(entry("k")) == entry("k")
    opened.close()


def test_a_reader_is_not_held_up_by_a_writer(tmp_path: Path, ledger: Ledger) -> None:
    ledger.put(entry("k"))
    writer = sqlite3.connect(ledger.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert ledger.get("k") == entry("k")
    writer.execute("ROLLBACK")
    writer.close()


def test_a_ledger_that_stays_locked_names_the_file_and_says_to_end_the_other_process(ledger: Ledger) -> None:
    ledger._db.execute("PRAGMA busy_timeout=1")
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        ArenaError, match=r"ledger\.sqlite: the ledger cannot be used \(database is locked\); another process has held it"
    ):
        ledger.put(entry("k"))
    other.execute("ROLLBACK")
    other.close()
    assert ledger.put(entry("k")) == entry("k")


def test_a_file_that_is_no_database_is_called_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(ArenaError, match=r"l\.sqlite: the ledger is corrupt \(file is not a database\); move it away"):
        Ledger(path)


def test_a_corrupt_file_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(ArenaError):
        Ledger(path)
    assert path.read_bytes() == b"no database at all" * 100


def test_a_file_damaged_inside_is_called_corrupt_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    opened = Ledger(path)
    opened.load([entry(f"key{i:04}", '"' + "x" * 500 + '"') for i in range(200)])
    opened.close()
    whole = path.read_bytes()
    header = 4096
    path.write_bytes(whole[:header] + b"\xff" * (len(whole) - header))
    with pytest.raises(
        ArenaError, match=r"l\.sqlite: the ledger is corrupt .*; move it away and run again, or refill it from calls"
    ):
        Ledger(path).get("key0100")


def test_a_folder_that_cannot_be_made_names_the_variable_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArenaError, match=r"file/l\.sqlite: the ledger's folder cannot be made \(.+\); set ARENA_LEDGER"):
        Ledger(tmp_path / "file" / "l.sqlite")


def test_a_folder_in_place_of_the_file_names_the_variable_to_set(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match=r"the ledger cannot be used \(unable to open database file\); .*ARENA_LEDGER"):
        Ledger(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_names_the_variable_to_set(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(
        ArenaError, match=r"l\.sqlite: the ledger cannot be used .*mend its folder's rights or space, or name another"
    ):
        Ledger(folder / "l.sqlite")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_ledger_names_the_variable_to_set(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    Ledger(path).close()
    path.chmod(0o400)
    with pytest.raises(ArenaError, match=r"l\.sqlite: the ledger cannot be used \(.*readonly.*\); mend its folder's rights"):
        Ledger(path).put(entry("k"))


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical({"b": [1, {"d": 2, "c": 3}], "a": "é"}) == '{"a":"é","b":[1,{"c":3,"d":2}]}'
    assert json.loads(canonical({"b": 1, "a": 2})) == {"a": 2, "b": 1}


@pytest.mark.parametrize(("endpoint", "request_"), [('"other"', '"request"'), ('"e"', '"other"')])
def test_a_key_depends_on_who_answers_and_on_what_is_asked(endpoint: str, request_: str) -> None:
    assert call_key('"e"', '"request"') == call_key('"e"', '"request"')
    assert call_key(endpoint, request_) != call_key('"e"', '"request"')


def test_the_environment_names_the_ledger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARENA_LEDGER", str(tmp_path / "mine.sqlite"))
    assert default_path() == tmp_path / "mine.sqlite"


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_name_the_ledger_lies_in_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("ARENA_LEDGER")
    if value is not None:
        monkeypatch.setenv("ARENA_LEDGER", value)
    assert default_path().name == "ledger.sqlite"
    assert default_path().parent.name == "rag-arena"
