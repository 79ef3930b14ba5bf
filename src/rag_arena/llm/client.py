"""The one client in front of the transport chain.

`openai.AsyncOpenAI` -> httpx2 client -> `ReasoningTransport` -> `LedgerTransport` -> embedded model or network. Retries with
back-off (and Retry-After) are the openai client's.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Any, TypeVar

import httpx2
import openai

from rag_arena.errors import ArenaError
from rag_arena.llm import embedded
from rag_arena.llm.keys import key_from
from rag_arena.llm.ledger import Ledger, canonical
from rag_arena.llm.reasoning import ReasoningTransport
from rag_arena.llm.refusals import explain
from rag_arena.llm.transport import LedgerTransport
from rag_arena.metering import labelled
from rag_arena.params import Endpoint, Llm, Params

SMALL = "small_llm"  # the section of params.yaml that sets the small model, and the tier of its calls
T = TypeVar("T")


def key_of(endpoint: Endpoint) -> str:
    """The key of a server, from the environment alone; for one that wants none a word, since the openai client insists on one.

    Raises:
        EndpointError: the server needs a key, and its environment variable is not set or holds none.
    """
    where, otherwise = endpoint.base_url.rstrip("/"), " (any word for a server without keys)"
    return key_from(endpoint.api_key_env, where, otherwise) or "none"


def connect(llm: Llm, ledger: Ledger) -> openai.AsyncOpenAI:
    """A client whose every call goes through the ledger.

    Raises:
        EndpointError: as `key_of`.
    """
    endpoint, transport = llm.endpoint, llm.transport
    inner: httpx2.AsyncBaseTransport
    if endpoint.kind == "embedded":
        base_url, key = "http://embedded/v1", "none"
        identity = canonical(embedded.identity(endpoint))
        inner = embedded.EmbeddedTransport(endpoint)
    else:
        base_url, key = endpoint.base_url.rstrip("/"), key_of(endpoint)
        identity = canonical({"base_url": base_url, "model": endpoint.model})
        inner = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=transport.max_concurrency))
    ledgered = LedgerTransport(ledger, inner, identity, llm)
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
        return Message(text, thoughts, choice.finish_reason or "", tokens_of(choice.logprobs))

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
            EndpointError: the endpoint refuses every request alike.
            ArenaError: this request failed after all retries.
        """
        sampling = request_settings(self.endpoint, max_tokens, "max_tokens")
        asked = self.client.completions.create(model=self.endpoint.model, prompt=prompt, extra_body={**sampling, **more})
        choice = (await self._answered(node, asked)).choices[0]
        return Message(choice.text, "", choice.finish_reason or "", raw_tokens_of(choice.logprobs))

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


def tokens_of(logprobs: Any) -> tuple[Token, ...]:
    """The tokens of a chat's choice, none where the server gave no log-probabilities."""
    content = getattr(logprobs, "content", None) or []
    return tuple(Token(t.token, t.logprob, {a.token: a.logprob for a in t.top_logprobs or []}) for t in content)


def raw_tokens_of(logprobs: Any) -> tuple[Token, ...]:
    """As `tokens_of`, of a raw completion's choice; llama.cpp describes its tokens as a chat's."""
    if content := getattr(logprobs, "content", None):
        return tuple(Token(t["token"], t["logprob"], {a["token"]: a["logprob"] for a in t["top_logprobs"]}) for t in content)
    said, each = getattr(logprobs, "tokens", None) or [], getattr(logprobs, "token_logprobs", None) or []
    alternatives = getattr(logprobs, "top_logprobs", None) or [{}] * len(said)
    return tuple(Token(text, p, others or {}) for text, p, others in zip(said, each, alternatives, strict=True))


def request_settings(endpoint: Endpoint, max_tokens: int, limit: str = "") -> dict[str, Any]:
    """Sampling settings as this endpoint wants them named, or its limit as `limit` says; what is null is not sent."""
    settings: dict[str, Any] = {limit or endpoint.max_tokens_key: max_tokens}
    if endpoint.temperature is not None:
        settings["temperature"] = endpoint.temperature
    if endpoint.seed is not None:
        settings["seed"] = endpoint.seed
    return settings
