"""A model behind a JSON endpoint that is no chat, asked from synchronous code, which may itself run inside an event loop."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2

from rag_arena.llm.exchange import Service, exchange
from rag_arena.llm.keys import key_from
from rag_arena.llm.ledger import Entry, Ledger, call_key, canonical, default_path
from rag_arena.params import Served, Transport

Body = Mapping[str, Any]
Reader = Callable[[Any], Any]  # takes what is wanted out of a reply, or refuses it by ValueError, LookupError or TypeError


class ServedModel:
    """Sends bodies to one path of a server.

    Args:
        params: where the server is.
        transport: how requests travel.
        section: where these parameters stand in params.yaml.
        path: put after the base URL.
        form: the key of these parameters that decides which fields a request has.
        wanted: what a reply holds.
    """

    def __init__(self, params: Served, transport: Transport, section: str, path: str, form: str, wanted: str) -> None:
        self._params = params
        self._transport = transport
        self._section = section
        self._base_url = params.base_url.rstrip("/")
        self._path = path
        self._form = form
        self._wanted = wanted
        self._threads = ThreadPoolExecutor(transport.max_concurrency)
        self._ledger = Ledger(default_path())

    def ask(self, body: Body, read: Reader) -> Any:
        """What a reply holds; from the ledger if the same was asked before, else kept there.

        Raises:
            EndpointError: nobody answers, there is no key, or every request is refused alike.
            ArenaError: this request failed after all retries, or its reply cannot be read.
        """
        return self._threads.submit(self._recorded, body, read).result()

    def ask_ahead(self, questions: Iterable[tuple[Body, Reader]]) -> None:
        """Ask what is not in the ledger yet, several at once, so that `ask` finds it there.

        Raises:
            ArenaError: as `ask`.
        """
        for _ in self._threads.map(lambda question: self._recorded(*question), questions):
            pass

    def ask_all(self, questions: Iterable[tuple[Body, Reader]]) -> Iterator[Any]:
        """What each reply holds, in order; several requests are under way at once, and none is kept.

        Raises:
            ArenaError: as `ask`.
        """
        yield from self._threads.map(lambda question: question[1](json.loads(self._send(*question))), questions)

    def _recorded(self, body: Body, read: Reader) -> Any:
        identity = canonical({"base_url": self._base_url, "model": self._params.model})
        request = canonical({"path": self._path, **body})
        key = call_key(identity, request)
        entry = self._ledger.get(key)
        if entry is None:
            start = time.perf_counter()
            reply = self._send(body, read)
            usage = json.loads(reply).get("usage") or {} if reply.startswith("{") else {}
            tokens = int(usage.get("prompt_tokens") or usage.get("total_tokens") or 0)
            entry = self._ledger.put(Entry(key, identity, request, reply, tokens, 0, time.perf_counter() - start))
        return read(json.loads(entry.reply))

    def _send(self, body: Body, read: Reader) -> str:
        url, variable = self._base_url + self._path, self._params.api_key_env
        secret = key_from(variable, url, f", or {self._section}.api_key_env to '' for none")
        form, longest, most = (f"{self._section}.{key}" for key in (self._form, "max_characters", "batch_size"))
        checked = f"check {form}, {longest} and {most}"
        service = Service(
            self._wanted,
            read,
            f"check {variable or f'{self._section}.api_key_env'}",
            f"mend {self._section}.base_url or {self._section}.model ({self._params.model})",
            f"start the server or mend {self._section}.base_url",
            f"wait until it has loaded its model, raise served.deadline_s, or lower {most}",
            {400: checked, 413: f"lower {most} or {longest}", 422: checked},
        )
        return asyncio.run(exchange(httpx2.Request("POST", url, json=body), service, self._transport, secret))
