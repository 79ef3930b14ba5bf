"""Is everything in place for a run? What is wrong with packages, disk, ledger, configuration, data or models, and the mend."""

import importlib.metadata
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai

from rag_arena import layout, sources, strategies
from rag_arena.compose import drift
from rag_arena.embedders.probe import probe as probe_embedder
from rag_arena.errors import ArenaError
from rag_arena.llm import embedded
from rag_arena.llm.client import request_settings
from rag_arena.llm.ledger import Ledger, default_path
from rag_arena.llm.lookups import opening
from rag_arena.llm.refusals import explain
from rag_arena.params import Llm, Params, load
from rag_arena.rerankers.probe import probe as probe_reranker
from rag_arena.sources import labels
from rag_arena.stages.preflight import check_calibration
from rag_arena.wording import count

FREE_GB = 2.0
_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, whether it is well, and what was found or has to be done."""

    subject: str
    well: bool
    detail: str


def examine(lock: Path) -> Iterator[Finding]:
    """Every check in turn; one that fails does not stop the others.

    Args:
        lock: requirements.lock, against which installed packages are held.
    """
    yield _finding("packages", lambda: _packages(lock))
    yield _finding("disk", _disk)
    yield _finding("ledger", _ledger)
    yield _finding("dvc", _claims)
    try:
        params = load(layout.PARAMS)
        strategies.check(params)
    except ArenaError as error:
        yield Finding("configuration", False, str(error))
        return
    yield _finding("configuration", lambda: _configuration(params))
    yield _finding("dataset", lambda: _dataset(params))
    yield _finding("embedder", lambda: probe_embedder(params.embedder))
    yield _finding("reranker", lambda: probe_reranker(params.reranker, params.embedder))
    yield _finding("model", lambda: _model(params.llm, "llm"))
    if params.judge.llm.endpoint != params.llm.endpoint:
        yield _finding("judge", lambda: _model(params.judge.llm, "judge.llm"))


def _finding(subject: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, True, check())
    except ArenaError as error:
        return Finding(subject, False, str(error))


def _packages(lock: Path) -> str:
    if not lock.is_file():
        raise ArenaError(f"{lock}: missing; run from the project's folder")
    pinned = [
        m.groups() for line in lock.read_text(encoding="utf-8").splitlines() if (m := _PINNED.match(line)) and ";" not in line
    ]
    wrong = []
    for name, version in pinned:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "absent"
        if found != version:
            wrong.append(f"{name} {found} instead of {version}")
    if wrong:
        raise ArenaError(
            f"{count(len(wrong), 'package')} not as in {lock} ({', '.join(wrong[:3])}); delete .venv and run `make setup`"
        )
    return f"{count(len(pinned), 'package')} as pinned"


def _disk() -> str:
    free = {str(place): shutil.disk_usage(_existing(place)).free / 1e9 for place in (Path.cwd(), default_path().parent)}
    for place, gigabytes in free.items():
        if gigabytes < FREE_GB:
            raise ArenaError(f"{place}: {gigabytes:.1f} GB free, {FREE_GB:g} are advised; free space")
    for folder in (Path("data"), layout.RESULTS):
        try:
            with tempfile.TemporaryFile(dir=_existing(folder)):
                pass
        except OSError as error:
            raise ArenaError(f"{folder}: cannot be written ({error.strerror}); mend the rights") from error
    return ", ".join(f"{gigabytes:.0f} GB free at {place}" for place, gigabytes in free.items())


def _existing(place: Path) -> Path:
    return next(folder for folder in (place, *place.absolute().parents) if folder.is_dir())


def _ledger() -> str:
    path = default_path()
    ledger = Ledger(path)
    try:
        calls = sum(row.calls for row in ledger.stats())
        ledger.check()
    finally:
        ledger.close()
    return f"{path}: {count(calls, 'call')}"


def _claims() -> str:
    path = Path(".dvc/tmp/rwlock")
    try:
        json.loads(path.read_text(encoding="utf-8") if path.exists() else "{}")
    except ValueError as error:
        raise ArenaError(f"{path}: DVC was killed while writing it; `snakemake --cores 1` mends it, or delete it") from error
    return "nothing left of a killed run"


def _configuration(params: Params) -> str:
    changed = drift(layout.CONF, layout.PARAMS)
    names = ", ".join(map(str, params.cells))
    differs = f"; differs from conf/ in {count(len(changed), 'key')}, see `arena compose --check`" if changed else ""
    return f"{count(len(params.cells), 'cell')} ({names}){differs}"


def _dataset(params: Params) -> str:
    with opening(default_path(), params.llm.transport) as lookups:
        loaded = sources.load(params.dataset, lookups)
    without_gold = sum(not row["gold_ids"] for row in loaded.questions)
    check_calibration(params, without_gold < len(loaded.questions), labels.read(layout.LABELS))
    parts = [count(len(loaded.corpus), "document"), count(len(loaded.questions), "question")]
    parts += [f"{count(len(loaded.unresolved), 'supporting fact')} unresolved"] if loaded.unresolved else []
    parts += [f"{without_gold} without gold documents"] if without_gold else []
    return f"{params.dataset.path}: {', '.join(parts)}"


def _model(llm: Llm, key: str) -> str:
    """One short question, past the ledger, so that a wrong key is not hidden by an old reply."""
    endpoint = llm.endpoint
    if endpoint.kind == "embedded":
        return f"{endpoint.model}: {embedded.model_path().name} is in place"
    secret = os.environ.get(endpoint.api_key_env, "")
    if not secret:
        raise ArenaError(f"{key}: no key; set {endpoint.api_key_env} (any word for a server without keys)")
    with openai.OpenAI(base_url=endpoint.base_url, api_key=secret, max_retries=0, timeout=llm.transport.deadline_s) as client:
        try:
            completion: Any = client.chat.completions.create(
                model=endpoint.model,
                messages=[{"role": "user", "content": "Say yes."}],
                extra_body=request_settings(endpoint, 16),
            )
        except openai.OpenAIError as error:
            raise explain(error, endpoint, key) from error
        except ValueError:  # 200, said to be JSON, and not
            completion = None
    if not getattr(completion, "choices", None):
        raise ArenaError(f"{endpoint.base_url}: 200 without a chat completion; mend {key}.endpoint.base_url")
    return f"{endpoint.model} at {endpoint.base_url} answers"
