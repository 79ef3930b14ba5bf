"""GET requests to the open web whose replies are JSON: each is kept in the ledger and replayed.

Only complete replies of the right shape are recorded, so that a replay needs no server.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_exponential

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.ledger import SECRET_LENGTH, Entry, Ledger, call_key, canonical
from rag_arena.params import Transport

_AGENT = "rag-arena/0.1 (comparison of retrieval strategies)"  # Wikimedia refuses clients that do not name themselves
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_BUSY = ("maxlag", "ratelimited", "readonly")  # errors of MediaWiki's that come with status 200
_LONGEST_WAIT_S = 60.0
_backing_off = wait_exponential(multiplier=0.5, max=8)


class _PassingError(Exception):
    """A refusal that may pass, with what to say when it does not, and how long the server asks to wait."""

    def __init__(self, said: str, wait_s: float = 0.0) -> None:
        super().__init__(said)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Site:
    """Where to ask, and what to say when it refuses.

    `key` is the key of params.yaml that names the site, `wanted` what a good reply holds, `read` reads one (ValueError or
    KeyError: it has another shape).
    """

    url: str
    key: str
    wanted: str
    when_forbidden: str
    read: Callable[[Any], Any]
    secret: str = ""


class Lookups:
    """Asks a site, or the ledger if the same was asked before."""

    def __init__(self, ledger: Ledger, transport: Transport) -> None:
        self._ledger = ledger
        self._transport = transport

    async def get(self, site: Site, identity: Mapping[str, str], parameters: Mapping[str, str]) -> tuple[Entry, bool]:
        """The reply as the ledger has it, and whether it was there already.

        Args:
            site: where to ask.
            identity: who answers, for the ledger.
            parameters: of the request.

        Raises:
            EndpointError: nobody answers, or the site refuses every request alike.
            ArenaError: this request failed after all retries, or its reply cannot be read.
        """
        who, request = canonical(identity), canonical(parameters)
        key = call_key(who, request)
        if (entry := self._ledger.get(key)) is not None:
            return entry, True
        start = time.perf_counter()
        reply = await self._send(site, parameters)
        return self._ledger.put(Entry(key, who, request, reply, 0, 0, time.perf_counter() - start)), False

    async def _send(self, site: Site, parameters: Mapping[str, str]) -> str:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(_PassingError),
            stop=stop_after_attempt(1 + self._transport.max_retries),
            wait=_as_asked,
            reraise=True,
        )
        try:
            return str(await tries(self._send_once, site, parameters))
        except _PassingError as error:
            raise ArenaError(str(error)) from error

    async def _send_once(self, site: Site, parameters: Mapping[str, str]) -> str:
        url, deadline = site.url, self._transport.deadline_s
        headers = {"user-agent": _agent(), **({"authorization": f"Bearer {site.secret}"} if site.secret else {})}
        try:
            async with asyncio.timeout(deadline), httpx2.AsyncClient(timeout=None) as client:
                response = await client.get(url, params=dict(parameters), headers=headers)
        except TimeoutError as error:
            late = f"{url}: no complete reply within {deadline:g} s; raise llm.transport.deadline_s"
            raise _PassingError(late) from error
        except httpx2.ConnectError as error:
            raise EndpointError(f"{url}: nobody answers ({error}); start the server or mend {site.key}") from error
        except httpx2.TransportError as error:
            raise _PassingError(f"{url}: {error or type(error).__name__}") from error
        said = " ".join(_without(site.secret, response.text)[:120].split())
        if response.status_code in (401, 403):
            raise EndpointError(f"{url}: {response.status_code}; {site.when_forbidden}")
        if response.status_code in (301, 302, 307, 308, 404):
            raise EndpointError(f"{url}: {response.status_code}; mend {site.key}")
        if response.status_code != 200:
            refused = f"{url}: {response.status_code} {said}"
            raise _PassingError(refused, _asked_to_wait(response)) if response.status_code in _PASSING else ArenaError(refused)
        try:
            reply = json.loads(_without(site.secret, response.text))
            if isinstance(reply, dict) and isinstance(reply.get("error"), dict) and reply["error"].get("code") in _BUSY:
                raise _PassingError(
                    f"{url}: busy ({reply['error'].get('info', reply['error']['code'])})", _asked_to_wait(response)
                )
            site.read(reply)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ArenaError(f"{url}: 200 without {site.wanted} ({error}): {said}") from error
        return canonical(reply).encode("utf-8", "replace").decode()  # snippets are cut in the middle of an emoji


def _agent() -> str:
    """Who asks; Wikimedia wants to know whom to write to."""
    contact = os.environ.get("ARENA_CONTACT", "")
    return f"{_AGENT} {contact}".strip()


def _as_asked(state: RetryCallState) -> float:
    """Seconds to wait: longer after every failure, and at least what the server asked for, up to a minute."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.wait_s if isinstance(error, _PassingError) else 0.0
    return max(_backing_off(state), min(asked, _LONGEST_WAIT_S))


def _asked_to_wait(response: httpx2.Response) -> float:
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdecimal() else 0.0


def _without(secret: str, text: str) -> str:
    return text.replace(secret, "***") if len(secret) >= SECRET_LENGTH else text
