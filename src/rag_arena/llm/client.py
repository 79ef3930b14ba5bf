"""The transport chain and the one client in front of it.

`openai.AsyncOpenAI` -> httpx2 client -> `ReasoningTransport` -> `LedgerTransport` -> embedded model or network. Retries with
back-off (and Retry-After) are the openai client's; recording, replay, sharing of identical calls, the concurrency limit and
the deadline are the ledger transport's, and so hold for ragas's calls as well.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Any, TypeVar

import httpx2
import openai

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm import embedded
from rag_arena.llm.ledger import SECRET_LENGTH, Entry, Ledger, call_key, canonical
from rag_arena.llm.reasoning import ReasoningTransport
from rag_arena.metering import Call, current_node, current_tier, labelled, record_call
from rag_arena.params import Endpoint, Llm, Params

SMALL = "small_llm"  # the section of params.yaml that sets the small model, and the tier of its calls
T = TypeVar("T")
_OURS = "rag_arena"  # the extension of a response that carries an error of the ledger
_KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")  # what the openai client's retries read


class LedgerTransport(httpx2.AsyncBaseTransport):
    """Replays recorded calls; sends, checks and records the others.

    Recorded are complete HTTP 200 replies with at least one choice, those cut by the token limit included. Never
    recorded: errors, cut bodies, and 200s that carry an error object, HTML or no choices.
    """

    def __init__(self, ledger: Ledger, inner: httpx2.AsyncBaseTransport, identity: str, limit: int, deadline_s: float) -> None:
        self._ledger = ledger
        self._inner = inner
        self._identity = identity
        self._slots = asyncio.Semaphore(limit)
        self._deadline_s = deadline_s
        self._under_way: dict[str, asyncio.Future[Entry | httpx2.Response]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer from the ledger, from an identical call under way, or from the inner transport.

        A ledger that fails is told as a refusal: the openai client would try an exception again, and pay again.
        """
        try:
            return await self._answer(request)
        except ArenaError as error:
            return httpx2.Response(400, json={}, headers={"x-should-retry": "false"}, extensions={_OURS: error}, request=request)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        body = canonical(json.loads(await request.aread()))
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
                    content = _without_key(await response.aread(), request)
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


def _without_key(content: bytes, request: httpx2.Request) -> bytes:
    """A body in which the request's own key is blotted out: servers echo it in errors, and errors are kept and shown."""
    key = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
    return content.replace(key, b"***") if len(key) >= SECRET_LENGTH else content


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


def connect(llm: Llm, ledger: Ledger) -> openai.AsyncOpenAI:
    """A client whose every call goes through the ledger.

    Raises:
        EndpointError: the endpoint needs a key and its environment variable is not set.
    """
    endpoint, transport = llm.endpoint, llm.transport
    inner: httpx2.AsyncBaseTransport
    if endpoint.kind == "embedded":
        base_url, key = "http://embedded/v1", "none"
        identity = canonical(embedded.identity(endpoint))
        inner = embedded.EmbeddedTransport(endpoint)
    else:
        base_url, key = endpoint.base_url.rstrip("/"), os.environ.get(endpoint.api_key_env, "")
        if not key:
            raise EndpointError(f"{base_url}: needs a key; set {endpoint.api_key_env} (any word for a server without keys)")
        identity = canonical({"base_url": base_url, "model": endpoint.model})
        inner = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=transport.max_concurrency))
    ledgered = LedgerTransport(ledger, inner, identity, transport.max_concurrency, transport.deadline_s)
    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=transport.max_retries,
        timeout=None,  # the ledger transport keeps the deadline, queueing excluded
        http_client=httpx2.AsyncClient(transport=ReasoningTransport(ledgered), timeout=None),
    )


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply: its log-probability, and those of the likeliest tokens in its place (itself among them)."""

    text: str
    logprob: float
    alternatives: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Message:
    """What a model said, `text` perhaps empty: the answer, the thoughts before it, why it stopped, its tokens if asked for."""

    text: str
    thoughts: str
    finish_reason: str
    tokens: tuple[Token, ...] = ()

    def likelihood(self, part: str) -> float | None:
        """exp of the mean log-probability of the tokens that spell a part of the text.

        None when the server gave none, or when thoughts are among them.
        """
        start, position, logprobs = "".join(token.text for token in self.tokens).find(part), 0, []
        for token in self.tokens:
            if position < start + len(part) and position + len(token.text) > start >= 0:
                logprobs.append(token.logprob)
            position += len(token.text)
        return exp(fsum(logprobs) / len(logprobs)) if logprobs and not self.thoughts else None


class ChatModel:
    """Completions against one endpoint, with the endpoint's sampling settings."""

    def __init__(self, client: openai.AsyncOpenAI, endpoint: Endpoint, tier: str = "llm", section: str = "") -> None:
        self.client = client
        self.endpoint = endpoint
        self._tier = tier
        self._section = section or tier  # where a mend of the endpoint is to be made

    async def ask(self, node: str, prompt: str, max_tokens: int, **more: Any) -> Message:
        """One message to one user message.

        Args:
            node: the step that asks, for the record of calls.
            prompt: the user message.
            max_tokens: longest reply.
            more: further fields of the request, such as `logprobs` and `response_format`.

        Raises:
            EndpointError: the endpoint refuses every request alike.
            ArenaError: this request failed after all retries.
        """
        asked = self.client.chat.completions.create(
            model=self.endpoint.model,
            messages=[{"role": "user", "content": prompt}],
            extra_body={**request_settings(self.endpoint, max_tokens), **more},
        )
        completion = await self._answered(node, asked)
        choice = completion.choices[0]
        text, thoughts = choice.message.content or "", getattr(choice.message, "reasoning_content", None) or ""
        return Message(text, thoughts, choice.finish_reason or "", _tokens(choice.logprobs))

    async def complete(self, node: str, prompt: str, max_tokens: int, **more: Any) -> Message:
        """As `ask`, for a reply that must not be empty.

        Raises:
            EndpointError: as `ask`.
            ArenaError: as `ask`, or the reply holds no answer.
        """
        reply = await self.ask(node, prompt, max_tokens, **more)
        if not reply.text:
            found = "only reasoning" if reply.thoughts else "an empty reply"
            mend = "raise max_tokens" if reply.thoughts or reply.finish_reason == "length" else "the model had nothing to say"
            raise ArenaError(f"{self.endpoint.model}: {found} at {node} (finish_reason {reply.finish_reason}); {mend}")
        return reply

    async def continue_text(self, node: str, prompt: str, max_tokens: int, **more: Any) -> Message:
        """The raw continuation of a prompt, white space included: for models with a prompt format of their own.

        Args:
            node: the step that asks, for the record of calls.
            prompt: the text to continue.
            max_tokens: longest continuation.
            more: further fields of the request; `logprobs` is the number of alternatives of each token.

        Raises:
            EndpointError: the endpoint refuses every request alike, or is the embedded one, which completes chats only.
            ArenaError: this request failed after all retries.
        """
        if self.endpoint.kind == "embedded":
            raise EndpointError(
                f"{self.endpoint.model}: the embedded model completes chats only; name a server of raw completions in "
                f"{self._section}.endpoint (kind: openai)"
            )
        sampling = request_settings(self.endpoint.model_copy(update={"max_tokens_key": "max_tokens"}), max_tokens)
        asked = self.client.completions.create(model=self.endpoint.model, prompt=prompt, extra_body={**sampling, **more})
        choice = (await self._answered(node, asked)).choices[0]
        return Message(choice.text, "", choice.finish_reason or "", _raw_tokens(choice.logprobs))

    async def _answered(self, node: str, asked: Awaitable[T]) -> T:
        with labelled(node, self._tier):
            try:
                return await asked
            except openai.OpenAIError as error:
                raise explain(error, self.endpoint, self._section) from error


def chat_models(params: Params, clients: Sequence[openai.AsyncOpenAI]) -> tuple[ChatModel, ChatModel]:
    """The model that answers and the small one, each over its own client."""
    section = "llm" if params.small_llm.endpoint == params.llm.endpoint else SMALL
    return ChatModel(clients[0], params.llm.endpoint), ChatModel(clients[1], params.small_llm.endpoint, SMALL, section)


def _tokens(logprobs: Any) -> tuple[Token, ...]:
    content = getattr(logprobs, "content", None) or []
    return tuple(Token(t.token, t.logprob, {a.token: a.logprob for a in t.top_logprobs or []}) for t in content)


def _raw_tokens(logprobs: Any) -> tuple[Token, ...]:
    said, each = getattr(logprobs, "tokens", None) or [], getattr(logprobs, "token_logprobs", None) or []
    alternatives = getattr(logprobs, "top_logprobs", None) or [{}] * len(said)
    return tuple(Token(text, p, others or {}) for text, p, others in zip(said, each, alternatives, strict=True))


def request_settings(endpoint: Endpoint, max_tokens: int) -> dict[str, Any]:
    """Sampling settings as this endpoint wants them named; what is null is not sent."""
    settings: dict[str, Any] = {endpoint.max_tokens_key: max_tokens}
    if endpoint.temperature is not None:
        settings["temperature"] = endpoint.temperature
    if endpoint.seed is not None:
        settings["seed"] = endpoint.seed
    return settings


_REFUSES = re.compile(
    r"support|unknown|unrecogni|unexpected|unavailable|invalid|not (permitted|allowed)|forbidden|must be (one of|')|enabled only"
)
_TOO_MUCH = re.compile(r"too (large|long|many)|context (length|size|window)|at (most|least)")  # of this question alone


def _refused_field(said: str, endpoint: Endpoint, section: str) -> str | None:
    """What to change when a server says that it does not know a field of ours; None when it complains of something else."""
    text = said.lower()
    if re.search(r"\b(top_)?logprobs\b", text):  # any complaint about them: every request asks for as many
        return f"set {section}.endpoint.top_logprobs to what it allows, 0 for none"
    if not _REFUSES.search(text) or _TOO_MUCH.search(text):
        return None
    other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[endpoint.max_tokens_key]
    shapes = " or ".join(shape for shape in ("json_schema", "json_object", "none") if shape != endpoint.structured_output)
    reshape = f"set {section}.endpoint.structured_output to {shapes}"
    advice = {
        "response.format": reshape,
        "json_schema": reshape,
        endpoint.max_tokens_key: f"set {section}.endpoint.max_tokens_key to {other}",
        "temperature": f"set {section}.endpoint.temperature to null",
        "seed": f"set {section}.endpoint.seed to null",
    }
    return next((what for field, what in advice.items() if re.search(rf"\b{field}\b", text)), None)


def _said(error: openai.APIStatusError) -> str:
    """The server's own words in one line: `message` of its error where that is a text, else the whole body."""
    inner = error.body.get("message") if isinstance(error.body, dict) else None
    return " ".join((inner if isinstance(inner, str) and inner.strip() else str(error.message)).split())[:300]


def explain(error: openai.OpenAIError, endpoint: Endpoint, section: str = "llm") -> ArenaError:
    """The openai client's error as one line that says what to do; fatal ones as EndpointError.

    Args:
        error: what the client raised.
        endpoint: who was asked.
        section: where the endpoint stands in params.yaml: llm or judge.llm.
    """
    where = endpoint.base_url or endpoint.model
    if isinstance(error, openai.APIStatusError):
        if (ours := error.response.extensions.get(_OURS)) is not None:
            return EndpointError(str(ours))
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return EndpointError(f"{where}: refuses the key ({error.status_code}); check {endpoint.api_key_env}")
        if isinstance(error, openai.NotFoundError):
            return EndpointError(
                f"{where}: 404; check {section}.endpoint.base_url and {section}.endpoint.model ({endpoint.model})"
            )
        said = f"{where}: {error.status_code} {_said(error)}"
        if error.status_code != 429 and (advice := _refused_field(_said(error), endpoint, section)) is not None:
            return EndpointError(f"{said}; {advice}")
        return ArenaError(said)
    if isinstance(error, openai.APITimeoutError):
        return ArenaError(f"{where}: no complete reply in time; raise {section}.transport.deadline_s")
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        if isinstance(cause, httpx2.ConnectError):
            return EndpointError(f"{where}: nobody answers ({cause}); start the server or mend {section}.endpoint.base_url")
        return ArenaError(f"{where}: {cause or error}")
    return ArenaError(f"{where}: {' '.join(str(error).split())[:300]}")
