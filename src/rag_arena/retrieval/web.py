"""Search outside the corpus, every reply kept in the ledger and replayed.

A document found is named `web:URL` and belongs to the question that found it: an engine shows another extract of a page for
another query. Only complete replies of the right shape are recorded, so that a replay needs no server.
"""

import asyncio
import json
import os
import time
from collections.abc import Mapping

import httpx2
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.ledger import SECRET_LENGTH, Entry, Ledger, call_key, canonical
from rag_arena.metering import Call, record_lookup
from rag_arena.params import Transport, Web
from rag_arena.records import Document
from rag_arena.retrieval.engines import ENGINES, Engine

_AGENT = "rag-arena/0.1 (comparison of retrieval strategies)"  # Wikimedia refuses clients that do not name themselves
_PASSING = (408, 425, 429, 500, 502, 503, 504)


class _PassingError(Exception):
    """A refusal that may pass, with what to say when it does not."""


class WebSearch:
    """Asks an engine, or the ledger if the same was asked before."""

    def __init__(self, ledger: Ledger, transport: Transport) -> None:
        self._ledger = ledger
        self._transport = transport

    async def search(self, node: str, kind: str, web: Web, query: str, k: int) -> list[Document]:
        """The first k documents for a query, in the engine's order; pages without text are left out.

        Args:
            node: the step that asks, for the record of calls.
            kind: `searxng` or `wikipedia`.
            web: where the engine is.
            query: what to search for.
            k: the most documents.

        Raises:
            EndpointError: nobody answers, or the engine refuses every request alike.
            ArenaError: this request failed after all retries, or its reply cannot be read.
        """
        engine = ENGINES[kind]
        base_url = web.base_url.rstrip("/")
        identity = canonical({"base_url": base_url, "engine": kind})
        request = canonical(engine.parameters(query, k))
        key = call_key(identity, request)
        entry = self._ledger.get(key)
        replayed = entry is not None
        if entry is None:
            start = time.perf_counter()
            reply = await self._send(engine, base_url + engine.path, json.loads(request), os.environ.get(web.api_key_env, ""))
            entry = self._ledger.put(Entry(key, identity, request, reply, 0, 0, time.perf_counter() - start))
        record_lookup(Call(node, key, identity, request, entry.reply, 0, 0, entry.latency_s, replayed))
        return _distinct(engine.read(json.loads(entry.reply)))[:k]

    async def _send(self, engine: Engine, url: str, parameters: Mapping[str, str], secret: str) -> str:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(_PassingError),
            stop=stop_after_attempt(1 + self._transport.max_retries),
            wait=wait_exponential(multiplier=0.5, max=8),
            reraise=True,
        )
        try:
            return str(await tries(self._send_once, engine, url, parameters, secret))
        except _PassingError as error:
            raise ArenaError(str(error)) from error

    async def _send_once(self, engine: Engine, url: str, parameters: Mapping[str, str], secret: str) -> str:
        headers = {"user-agent": _AGENT, **({"authorization": f"Bearer {secret}"} if secret else {})}
        try:
            async with asyncio.timeout(self._transport.deadline_s), httpx2.AsyncClient(timeout=None) as client:
                response = await client.get(url, params=dict(parameters), headers=headers)
        except TimeoutError as error:
            late = f"{url}: no complete reply within {self._transport.deadline_s:g} s; raise llm.transport.deadline_s"
            raise _PassingError(late) from error
        except httpx2.ConnectError as error:
            raise EndpointError(f"{url}: nobody answers ({error}); start the server or mend web.base_url") from error
        except httpx2.TransportError as error:
            raise _PassingError(f"{url}: {error or type(error).__name__}") from error
        said = " ".join(_without(secret, response.text)[:120].split())
        if response.status_code in (401, 403):
            raise EndpointError(f"{url}: {response.status_code}; {engine.when_forbidden}")
        if response.status_code in (301, 302, 307, 308, 404):
            raise EndpointError(f"{url}: {response.status_code}; mend web.base_url")
        if response.status_code != 200:
            refused = f"{url}: {response.status_code} {said}"
            raise _PassingError(refused) if response.status_code in _PASSING else ArenaError(refused)
        try:
            reply = json.loads(_without(secret, response.text))
            engine.read(reply)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ArenaError(f"{url}: 200 without search results ({error}): {said}") from error
        return canonical(reply).encode("utf-8", "replace").decode()  # snippets are cut in the middle of an emoji


def _without(secret: str, text: str) -> str:
    return text.replace(secret, "***") if len(secret) >= SECRET_LENGTH else text


def _distinct(documents: list[Document]) -> list[Document]:
    first: dict[str, Document] = {}
    for document in documents:
        if document.text:
            first.setdefault(document.doc_id, document)
    return list(first.values())
