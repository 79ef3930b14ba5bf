"""The ledger: every completed model call, kept once, replayed for ever.

An SQLite file that many processes share (write-ahead log). A call is found by a hash of who answers and the exact
request; headers, and so keys, never enter it. The first reply stored for a key is the one everybody reads.
"""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from rag_arena.errors import ArenaError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY,
    endpoint TEXT NOT NULL,
    request TEXT NOT NULL,
    reply TEXT NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    latency_s REAL NOT NULL,
    created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) WITHOUT ROWID
"""
_COLUMNS = "key, endpoint, request, reply, tokens_in, tokens_out, latency_s"


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded call. `endpoint`, `request` and `reply` are canonical JSON; `latency_s` is the original call's."""

    key: str
    endpoint: str
    request: str
    reply: str
    tokens_in: int
    tokens_out: int
    latency_s: float


@dataclass(frozen=True, slots=True)
class Stats:
    """What one endpoint's calls add up to."""

    endpoint: str
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def call_key(endpoint: str, request: str) -> str:
    """SHA-256 over who answers and what was asked, both as canonical JSON."""
    return hashlib.sha256(f"{endpoint}\n{request}".encode()).hexdigest()


def default_path() -> Path:
    """ARENA_LEDGER, else a file in the user's cache folder, which every checkout shares."""
    if named := os.environ.get("ARENA_LEDGER"):
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("rag-arena") / "ledger.sqlite"


# SQLite's own timeout does not hold while another process creates the file or switches its journal.
_patiently = Retrying(
    retry=retry_if_exception(lambda error: isinstance(error, sqlite3.OperationalError) and "locked" in str(error)),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.02),
    reraise=True,
)


class Ledger:
    """An open ledger file.

    Raises:
        ArenaError: the file cannot be opened or written, is corrupt, or stays locked for a minute.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArenaError(f"{path}: the ledger's folder cannot be made ({error.strerror}); set ARENA_LEDGER") from error
        self._turn = threading.RLock()
        with self._guarded():
            # autocommit; a minute covers another process's slowest commit
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            _patiently(self._db.execute, "PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_SCHEMA)

    def get(self, key: str) -> Entry | None:
        """The recorded call, or None."""
        with self._guarded():
            row = self._db.execute(f"SELECT {_COLUMNS} FROM calls WHERE key = ?", (key,)).fetchone()
        return Entry(*row) if row else None

    def put(self, entry: Entry) -> Entry:
        """Record a call unless its key is there already; return what the ledger holds now."""
        self.load([entry])
        kept = self.get(entry.key)
        assert kept is not None
        return kept

    def load(self, entries: Iterable[Entry]) -> int:
        """Record many calls in one transaction; return how many were new."""
        rows = [(e.key, e.endpoint, e.request, e.reply, e.tokens_in, e.tokens_out, e.latency_s) for e in entries]
        with self._guarded():
            before = self._db.total_changes
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(f"INSERT OR IGNORE INTO calls ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            return self._db.total_changes - before

    def stats(self) -> list[Stats]:
        """Totals per endpoint, by name."""
        query = (
            "SELECT endpoint, COUNT(*), SUM(tokens_in), SUM(tokens_out), SUM(latency_s) FROM calls "
            "GROUP BY endpoint ORDER BY endpoint"
        )
        with self._guarded():
            return [Stats(*row) for row in self._db.execute(query)]

    def check(self) -> None:
        """Read the whole file for damage and try to write to it.

        Raises:
            ArenaError: it is corrupt or cannot be written.
        """
        with self._guarded():
            verdict = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("ROLLBACK")

    def find(self, start: str) -> list[Entry]:
        """Calls whose key begins with `start`, at most 20."""
        query = f"SELECT {_COLUMNS} FROM calls WHERE substr(key, 1, ?) = ? ORDER BY key LIMIT 20"
        with self._guarded():
            return [Entry(*row) for row in self._db.execute(query, (len(start), start))]

    def prune(self, days: float) -> int:
        """Forget calls recorded more than `days` ago; return how many."""
        with self._guarded():
            forgotten = self._db.execute("DELETE FROM calls WHERE created < datetime('now', ?)", (f"-{days} days",)).rowcount
            self._db.execute("VACUUM")
        return forgotten

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            with self._turn:
                yield
        except sqlite3.OperationalError as error:
            reason = str(error)
            if "locked" in reason or "busy" in reason:
                advice = "another process has held it for a minute; end that process and run again"
            else:
                advice = "mend its folder's rights or space, or name another file in ARENA_LEDGER"
            raise ArenaError(f"{self.path}: the ledger cannot be used ({reason}); {advice}") from error
        except sqlite3.DatabaseError as error:
            raise ArenaError(
                f"{self.path}: the ledger is corrupt ({error}); move it away and run again, or refill it from calls.parquet"
            ) from error
