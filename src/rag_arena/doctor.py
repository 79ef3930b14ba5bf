"""Is everything in place for a run? What is wrong with packages, disk, ledger, configuration, data or models, and the mend."""

import asyncio
import importlib.metadata
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from rag_arena import layout, strategies
from rag_arena.compose import drift
from rag_arena.embedders.probe import probe as probe_embedder
from rag_arena.errors import ArenaError
from rag_arena.llm import embedded
from rag_arena.llm.keys import blotted
from rag_arena.llm.ledger import Ledger, default_path
from rag_arena.llm.lookups import opening
from rag_arena.llm.probe import Probe
from rag_arena.params import Endpoint, Params, Store, Transport, Web, load
from rag_arena.progress import waiting
from rag_arena.rerankers.probe import probe as probe_reranker
from rag_arena.retrieval.web import WebSearch
from rag_arena.sources import labels
from rag_arena.stages.download import Downloaded, download
from rag_arena.stages.preflight import check_calibration, check_split
from rag_arena.stages.sample import sample
from rag_arena.wording import count

FREE_GB = 2.0
DEADLINE_S = 20.0  # of a question to a service that is no language model
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
    yield from _data(params)
    once = _once(params.served)
    yield _finding("embedder", lambda: probe_embedder(params.embedder, once))
    yield _finding("reranker", lambda: probe_reranker(params.reranker, params.embedder, once))
    yield _finding("store", lambda: _store(params.store))
    yield from _models(params)
    yield from _web(params)


def _finding(subject: str, check: Callable[[], str]) -> Finding:
    try:
        with waiting(subject):
            return Finding(subject, True, blotted(check()))
    except ArenaError as error:
        return Finding(subject, False, blotted(str(error)))


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
    written = map(_existing, (Path.cwd(), Path("data"), layout.RESULTS, default_path().parent))
    disks = {place.stat().st_dev: place for place in reversed(list(written))}  # of several places on one, the first
    free = {str(place): shutil.disk_usage(place).free / 1e9 for place in reversed(disks.values())}
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


def _data(params: Params) -> Iterator[Finding]:
    """The dataset, and what is drawn from it; as the first stages do it, with nothing written."""
    downloaded = cache(lambda: _downloaded(params))
    dataset = _finding("dataset", lambda: _dataset(params, downloaded()))
    yield dataset
    if dataset.well:
        yield _finding("labels", lambda: _labels(downloaded()))
        yield _finding("sample", lambda: _sample(params, downloaded().questions))


def _downloaded(params: Params) -> Downloaded:
    with opening(default_path(), params.llm.transport) as lookups:
        return download(params.dataset, lookups)


def _dataset(params: Params, found: Downloaded) -> str:
    without_gold = sum(not gold for gold in found.questions["gold_ids"].to_pylist())
    parts = [found.size]
    parts += [f"{count(len(found.unresolved), 'supporting fact')} unresolved"] if found.unresolved else []
    parts += [f"{without_gold} without gold documents"] if without_gold else []
    return f"{params.dataset.path}: {', '.join(parts)}"


def _labels(found: Downloaded) -> str:
    rows = labels.read(layout.LABELS)
    known = (set(table[key].to_pylist()) for table, key in ((found.questions, "question_id"), (found.corpus, "doc_id")))
    labels.check(layout.LABELS, rows, *known)
    return f"{layout.LABELS}: {count(sum(row.verdict is not None for row in rows), 'label')}"


def _sample(params: Params, questions: pa.Table) -> str:
    rows = labels.read(layout.LABELS)
    check_calibration(params, any(questions["gold_ids"].to_pylist()), rows)
    evaluation, calibration = sample(questions, params.sample)
    check_split(params, questions, calibration, rows)
    return f"{count(evaluation.num_rows, 'question')} to evaluate on, {calibration.num_rows} to calibrate on"


def _store(store: Store) -> str:
    if store.backend != "server":
        return {"local": "filled in memory by every process", "edge": "filled on disk by every process"}[store.backend]
    from rag_arena.retrieval.server import connect  # a second to import

    with closing(connect(store, DEADLINE_S)) as client:
        return f"Qdrant {client.info().version} at {store.url} answers"


def _models(params: Params) -> Iterator[Finding]:
    """Every distinct endpoint, once, by the first section that names it."""
    sections = {
        "model": ("llm", params.llm),
        "small model": ("small_llm", params.small_llm),
        "judge": ("judge.llm", params.judge.llm),
    }
    asked: list[Endpoint] = []
    for subject, (section, llm) in sections.items():
        if llm.endpoint in asked:
            continue
        asked.append(llm.endpoint)
        if llm.endpoint.kind == "embedded":
            yield _finding(subject, partial(_embedded, llm.endpoint))
        else:
            yield from _server(subject, Probe(llm, section), subject == "model" and _reads_raw_completions(params))


def _embedded(endpoint: Endpoint) -> str:
    return f"{endpoint.model}: {embedded.model_path().name} is in place"


def _server(subject: str, probe: Probe, raw: bool) -> Iterator[Finding]:
    """What a server can do; if it does not reply, that alone."""
    reply = _finding(subject, probe.reply)
    yield reply
    if reply.well:
        if subject != "judge":  # whose verdicts are never probabilities
            yield _finding(f"{subject}, log-probabilities", probe.logprobs)
        yield _finding(f"{subject}, structured output", probe.structure)
        if raw:
            yield _finding(f"{subject}, raw completions", probe.raw)
        yield _finding(f"{subject}, context", probe.context)


def _web(params: Params) -> Iterator[Finding]:
    """The search engine of a strategy that leaves the corpus, if one does."""
    for settings in _chosen(params):
        if getattr(settings, "elsewhere", "second_lane") != "second_lane":
            yield _finding("web", partial(_searched, settings.elsewhere, settings.web, params.llm.transport))


def _searched(engine: str, web: Web, transport: Transport) -> str:
    with tempfile.TemporaryDirectory() as folder, closing(Ledger(Path(folder) / "ledger.sqlite")) as ledger:
        pages = asyncio.run(WebSearch(ledger, _once(transport)).search("doctor", engine, web, "river", 1))
    return f"{engine} at {web.base_url} finds {'something' if pages else 'nothing'}"


def _once(transport: Transport) -> Transport:
    return transport.model_copy(update={"max_retries": 0, "deadline_s": min(DEADLINE_S, transport.deadline_s)})


def _reads_raw_completions(params: Params) -> bool:
    return any(settings.reads_raw_completions for settings in _chosen(params))


def _chosen(params: Params) -> list[Any]:
    return [strategies.settings(name, params) for name in params.grid.strategies]
