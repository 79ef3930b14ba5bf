"""Search outside the corpus, every reply kept in the ledger and replayed.

A document found is named `web:URL` and belongs to the question that found it: an engine shows another extract of a page for
another query.
"""

import json

from rag_arena.llm.ledger import Ledger
from rag_arena.llm.lookups import Lookups, Site
from rag_arena.metering import Call, record_lookup
from rag_arena.params import Transport, Web
from rag_arena.records import Document
from rag_arena.retrieval.engines import ENGINES


class WebSearch:
    """Asks an engine, or the ledger if the same was asked before."""

    def __init__(self, ledger: Ledger, transport: Transport) -> None:
        self._lookups = Lookups(ledger, transport)

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
        base_url, said = web.base_url.rstrip("/"), engine.when_forbidden
        site = Site(base_url + engine.path, "web.base_url", "search results", said, engine.read, web.api_key_env)
        entry, replayed = await self._lookups.get(site, {"base_url": base_url, "engine": kind}, engine.parameters(query, k))
        record_lookup(Call(node, entry.key, entry.endpoint, entry.request, entry.reply, 0, 0, entry.latency_s, replayed))
        return _distinct(engine.read(json.loads(entry.reply)))[:k]


def _distinct(documents: list[Document]) -> list[Document]:
    first: dict[str, Document] = {}
    for document in documents:
        if document.text:
            first.setdefault(document.doc_id, document)
    return list(first.values())
