"""The ledger as a transport: recording, replay, sharing of identical calls, the concurrency limit and the deadline.

They hold for every call that goes through the client, ragas's as well as ours.
"""

import asyncio
import json
import time
from typing import Any

import httpx2

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.keys import blotted
from rag_arena.llm.ledger import Entry, Ledger, call_key, canonical
from rag_arena.metering import Call, current_node, current_tier, record_call
from rag_arena.params import Llm

OURS = "rag_arena"  # the extension of a response that carries an error of ours
SHORTEN = "shorten the question, lower k, or cut documents (dataset.chunking)"
_KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")  # what the openai client's retries read


class LedgerTransport(httpx2.AsyncBaseTransport):
    """Replays recorded calls; sends, checks and records the others, but for prompts that are too long.

    Recorded are complete HTTP 200 replies with at least one choice, those cut by the token limit included. Never
    recorded: errors, cut bodies, and 200s that carry an error object, HTML or no choices.
    """

    def __init__(self, ledger: Ledger, inner: httpx2.AsyncBaseTransport, identity: str, llm: Llm) -> None:
        self._ledger = ledger
        self._inner = inner
        self._identity = identity
        self._slots = asyncio.Semaphore(llm.transport.max_concurrency)
        self._deadline_s = llm.transport.deadline_s
        self._longest = llm.endpoint.max_prompt_characters
        self._under_way: dict[str, asyncio.Future[Entry | httpx2.Response]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer from the ledger, from an identical call under way, or from the inner transport.

        An error of ours is told as a refusal: the openai client would try an exception again, and pay again.
        """
        asked = json.loads(await request.aread())
        if self._longest is not None and (length := _prompt_length(asked)) > self._longest:
            over = f"a prompt of {length} characters, over max_prompt_characters ({self._longest})"
            return _told(ArenaError(f"{asked['model']}: {over}; {SHORTEN}"), request)
        try:
            return await self._answer(canonical(asked), request)
        except ArenaError as error:  # the ledger's: no further call could be recorded
            return _told(EndpointError(str(error)), request)

    async def _answer(self, body: str, request: httpx2.Request) -> httpx2.Response:
        key = call_key(self._identity, body)
        entry = self._ledger.get(key)
        replayed = entry is not None
        if entry is None and key in self._under_way:
            shared = await asyncio.shield(self._under_way[key])
            if isinstance(shared, httpx2.Response):
                return _copy(shared)
            entry, replayed = shared, True
        if entry is None:
            sent = await self._send_once(key, body, request)
            if isinstance(sent, httpx2.Response):
                return sent
            entry = sent
        record_call(
            Call(
                current_node(),
                key,
                self._identity,
                body,
                entry.reply,
                entry.tokens_in,
                entry.tokens_out,
                entry.latency_s,
                replayed,
                current_tier(),
            )
        )
        return httpx2.Response(200, content=entry.reply.encode(), headers={"content-type": "application/json"})

    async def _send_once(self, key: str, body: str, request: httpx2.Request) -> Entry | httpx2.Response:
        future: asyncio.Future[Entry | httpx2.Response] = asyncio.get_running_loop().create_future()
        self._under_way[key] = future
        try:
            sent = await self._send(key, body, request)
        except BaseException as error:
            future.set_exception(error if isinstance(error, Exception) else httpx2.ReadError("the shared call was cancelled"))
            future.exception()  # retrieved: nobody may be waiting
            raise
        else:
            future.set_result(sent)
            return sent
        finally:
            del self._under_way[key]

    async def _send(self, key: str, body: str, request: httpx2.Request) -> Entry | httpx2.Response:
        async with self._slots:
            start = time.perf_counter()
            try:
                async with asyncio.timeout(self._deadline_s):
                    response = await self._inner.handle_async_request(request)
                    content = blotted((await response.aread()).decode("latin-1")).encode("latin-1")  # any byte, as it is
            except TimeoutError as error:
                raise httpx2.ReadTimeout(f"no complete reply within {self._deadline_s:g} s", request=request) from error
            seconds = float(response.extensions.get("latency_s", time.perf_counter() - start))
        if response.status_code != 200:
            headers = {k: v for k, v in response.headers.items() if k in _KEPT_HEADERS}
            return httpx2.Response(response.status_code, content=content, headers=headers, request=request)
        wanted, shape = _CHOICES["/chat/" in request.url.path]
        reply = _completion(content, shape)
        if reply is None:
            start_of_body = " ".join(content[:120].decode("utf-8", "replace").split())
            raise httpx2.RemoteProtocolError(f"200 without a {wanted}: {start_of_body}", request=request)
        usage = reply.get("usage") or {}
        return self._ledger.put(
            Entry(
                key,
                self._identity,
                body,
                canonical(reply),
                int(usage.get("prompt_tokens") or 0),
                int(usage.get("completion_tokens") or 0),
                seconds,
            )
        )

    async def aclose(self) -> None:
        """Close the inner transport."""
        await self._inner.aclose()


def _told(error: ArenaError, request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(400, json={}, headers={"x-should-retry": "false"}, extensions={OURS: error}, request=request)


def _prompt_length(body: dict[str, Any]) -> int:
    texts = [body["prompt"]] if "prompt" in body else [message["content"] for message in body["messages"]]
    return sum(map(len, texts))


# What a reply is called, and what each of its choices must hold: by whether a chat or a raw text was to be completed.
_CHOICES = {True: ("chat completion", ("message", dict)), False: ("completion", ("text", str))}


def _completion(content: bytes, shape: tuple[str, type]) -> dict[str, Any] | None:
    try:
        reply = json.loads(content)
    except ValueError:
        return None
    if not isinstance(reply, dict) or reply.get("error"):
        return None
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    key, kind = shape
    return reply if all(isinstance(c, dict) and isinstance(c.get(key), kind) for c in choices) else None


def _copy(response: httpx2.Response) -> httpx2.Response:
    return httpx2.Response(response.status_code, content=response.content, headers=response.headers)
