"""The wire formats of web search: SearXNG's JSON API and MediaWiki's (search with the extracts of its TextExtracts extension)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_arena.records import Document

_MOST_EXTRACTS = 20  # of one reply of MediaWiki


@dataclass(frozen=True, slots=True)
class Engine:
    """One wire format: where to ask, with what, and how to read the reply (ValueError: it has another shape)."""

    path: str
    parameters: Callable[[str, int], Mapping[str, str]]
    read: Callable[[Any], list[Document]]
    when_forbidden: str


def _searxng(reply: Any) -> list[Document]:
    results = reply["results"]
    if not results and reply.get("unresponsive_engines"):
        raise ValueError("no engine behind it answered")
    return [Document(f"web:{r['url']}", r.get("title") or "", " ".join((r.get("content") or "").split())) for r in results]


def _wikipedia(reply: Any) -> list[Document]:
    if "error" in reply:
        raise ValueError(reply["error"]["info"])
    pages = sorted(reply.get("query", {}).get("pages", []), key=lambda page: page["index"])
    return [Document(f"web:{p['fullurl']}", p["title"], " ".join(p.get("extract", "").split())) for p in pages]


ENGINES = {
    "searxng": Engine(
        "/search",
        lambda query, _: {"q": query, "format": "json"},
        _searxng,
        "allow the format json in the instance's settings.yml (search.formats), or check the key in web.api_key_env",
    ),
    "wikipedia": Engine(
        "",
        lambda query, k: {
            "action": "query",
            "format": "json",
            "formatversion": "2",
            "generator": "search",
            "gsrsearch": query,
            "gsrlimit": str(min(k, _MOST_EXTRACTS)),
            "prop": "extracts|info",
            "exintro": "1",
            "explaintext": "1",
            "exlimit": "max",
            "inprop": "url",
        },
        _wikipedia,
        "check the key in web.api_key_env",
    ),
}
