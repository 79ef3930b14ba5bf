"""One request to a service that answers in JSON: within a deadline, tried again where that may help, refused in one line."""

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import httpx2
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_exponential

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.keys import blotted, header_from
from rag_arena.llm.ledger import canonical
from rag_arena.params import Transport

_AGENT = "rag-arena/0.1 (comparison of retrieval strategies)"  # Wikimedia refuses clients that do not name themselves
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_WAIT_S = 60.0
_backing_off = wait_exponential(multiplier=0.5, max=8)


class PassingError(Exception):
    """A refusal that may pass: what to say when it does not, and how many seconds the server asks to wait."""

    def __init__(self, said: str, wait_s: float = 0.0) -> None:
        super().__init__(said)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Service:
    """What a reply holds, and what the user can mend when there is none.

    Args:
        wanted: what a reply holds, as in "200 without ...".
        read: takes it out of the parsed JSON; ValueError says what is wrong; LookupError, TypeError and AttributeError mean
            another shape, PassingError that the same is worth asking again.
        forbidden: the mend of 401 and 403.
        absent: the mend of 404 and of redirects.
        silent: the mend where nobody answers.
        late: the mend of a deadline that passed.
        refused: the mends of other statuses, where there are any.
    """

    wanted: str
    read: Callable[[Any], Any]
    forbidden: str
    absent: str
    silent: str
    late: str
    refused: Mapping[int, str] = field(default_factory=dict)


async def exchange(request: httpx2.Request, service: Service, transport: Transport, secret: str) -> str:
    """The reply to a request, as canonical JSON in which keys are blotted out; `service.read` has accepted it.

    Args:
        request: method, URL and content; may be sent more than once.
        service: how its replies are read and its refusals told.
        transport: deadline and number of retries.
        secret: sent as a bearer token; empty: none is.

    Raises:
        EndpointError: nobody answers, or every request is refused alike.
        ArenaError: this request failed after all retries, or its reply cannot be read.
    """
    request.headers.update({"user-agent": _agent(_shown(request)), **({"authorization": f"Bearer {secret}"} if secret else {})})
    tries = AsyncRetrying(
        retry=retry_if_exception_type(PassingError),
        stop=stop_after_attempt(1 + transport.max_retries),
        wait=_as_asked,
        reraise=True,
    )
    try:
        return str(await tries(_once, request, service, transport.deadline_s))
    except PassingError as error:
        raise ArenaError(str(error)) from error


async def _once(request: httpx2.Request, service: Service, deadline_s: float) -> str:
    url = _shown(request)
    try:
        async with asyncio.timeout(deadline_s), httpx2.AsyncClient(timeout=None, verify=_trusted()) as client:
            response = await client.send(request)
    except TimeoutError as error:
        raise PassingError(f"{url}: no complete reply within {deadline_s:g} s; {service.late}") from error
    except httpx2.ConnectError as error:
        raise EndpointError(f"{url}: nobody answers ({error}); {service.silent}") from error
    except httpx2.TransportError as error:
        raise PassingError(f"{url}: {blotted(str(error)) or type(error).__name__}") from error
    text = blotted(response.text)
    said = " ".join(text[:120].split())
    if response.status_code in (401, 403):
        raise EndpointError(f"{url}: {response.status_code}; {service.forbidden}")
    if response.status_code in (301, 302, 307, 308, 404):
        raise EndpointError(f"{url}: {response.status_code}; {service.absent}")
    if response.status_code != 200:
        mend = service.refused.get(response.status_code)
        refused = f"{url}: {response.status_code} {said}" + (f"; {mend}" if mend else "")
        raise PassingError(refused, _asked_to_wait(response)) if response.status_code in _PASSING else ArenaError(refused)
    try:
        reply = json.loads(text)
        service.read(reply)
    except PassingError as error:
        raise PassingError(f"{url}: {error}", _asked_to_wait(response)) from error
    except json.JSONDecodeError as error:
        raise ArenaError(f"{url}: 200 without {service.wanted} (no JSON): {said}") from error
    except ValueError as error:
        raise ArenaError(f"{url}: 200 without {service.wanted} ({error}): {said}") from error
    except (LookupError, TypeError, AttributeError) as error:
        raise ArenaError(f"{url}: 200 without {service.wanted} (JSON of another shape): {said}") from error
    return canonical(reply).encode("utf-8", "replace").decode()  # texts may be cut in the middle of an emoji


@lru_cache
def _trusted() -> ssl.SSLContext:
    """The certificates to trust; reading them anew for every request would take longer than many requests."""
    return httpx2.create_ssl_context()


def _shown(request: httpx2.Request) -> str:
    return str(request.url.copy_with(query=None))


def _agent(where: str) -> str:
    """Who asks; Wikimedia wants to know whom to write to."""
    return f"{_AGENT} {header_from('ARENA_CONTACT', where)}".strip()


def _as_asked(state: RetryCallState) -> float:
    """Seconds to wait: longer after every failure, and at least what the server asked for, up to a minute."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.wait_s if isinstance(error, PassingError) else 0.0
    return max(_backing_off(state), min(asked, _LONGEST_WAIT_S))


def _asked_to_wait(response: httpx2.Response) -> float:
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdecimal() else 0.0
