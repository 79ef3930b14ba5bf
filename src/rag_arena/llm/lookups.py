"""GET requests to the open web whose replies are JSON: each is kept in the ledger and replayed.

Only complete replies of the right shape are recorded, so that a replay needs no server.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from rag_arena.llm.exchange import PassingError, Service, exchange
from rag_arena.llm.keys import key_from
from rag_arena.llm.ledger import Entry, Ledger, call_key, canonical
from rag_arena.params import Transport

_BUSY = ("maxlag", "ratelimited", "readonly")  # errors of MediaWiki's that come with status 200


@dataclass(frozen=True, slots=True)
class Site:
    """Where to ask, and what to say when it refuses.

    `key` is the key of params.yaml that names the site, `wanted` what a good reply holds, `read` reads one (ValueError or
    KeyError: it has another shape), `api_key_env` the environment variable that holds its key, if it wants one.
    """

    url: str
    key: str
    wanted: str
    when_forbidden: str
    read: Callable[[Any], Any]
    api_key_env: str = ""


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
        who, asked = canonical(identity), canonical(parameters)
        key = call_key(who, asked)
        if (entry := self._ledger.get(key)) is not None:
            return entry, True
        start = time.perf_counter()
        request = httpx2.Request("GET", site.url, params=dict(parameters))
        secret = key_from(site.api_key_env, site.url, f", or {site.key.replace('base_url', 'api_key_env')} to '' for none")
        reply = await exchange(request, _service(site), self._transport, secret)
        return self._ledger.put(Entry(key, who, asked, reply, 0, 0, time.perf_counter() - start)), False


@contextmanager
def opening(path: Path, transport: Transport) -> Iterator[Callable[[], Lookups]]:
    """Opens, if it is called, what asks servers and the ledger behind it, which is closed at the end."""
    with ExitStack() as stack:
        yield lambda: Lookups(stack.enter_context(closing(Ledger(path))), transport)


def _service(site: Site) -> Service:
    def read(reply: Any) -> Any:
        error = reply.get("error") if isinstance(reply, dict) else None
        if isinstance(error, dict) and error.get("code") in _BUSY:
            raise PassingError(f"busy ({error.get('info', error['code'])})")
        return site.read(reply)

    mend = f"mend {site.key}"
    late = "raise llm.transport.deadline_s"
    return Service(site.wanted, read, site.when_forbidden, mend, f"start the server or {mend}", late)
