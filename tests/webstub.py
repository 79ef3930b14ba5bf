"""Replies of SearXNG and MediaWiki, for the stub server to send."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.stub import Answer, Body, Stub

Page = tuple[str, str, str]  # URL, title, text
PAGES = [
    ("https://rivers.example/rhine", "Rhine", "The Rhine begins in the Alps. It ends in the North Sea."),
    ("https://rivers.example/elbe", "Elbe", "The Elbe begins in Bohemia."),
    ("https://dairy.example/cheese", "Cheese", "Cheese is made of milk."),
]


def sends(reply: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(reply).encode(), {"content-type": "application/json"})


def searxng(query: str, pages: Sequence[Page] = PAGES, unresponsive: Sequence[str] = ()) -> Answer:
    """As GET /search?format=json of SearXNG replies."""
    return sends(
        {
            "query": query,
            "number_of_results": 0,
            "results": [
                {
                    "url": url,
                    "title": title,
                    "content": text,
                    "engine": "stub",
                    "engines": ["stub"],
                    "score": 1 / rank,
                    "category": "general",
                }
                for rank, (url, title, text) in enumerate(pages, 1)
            ],
            "answers": [],
            "corrections": [],
            "infoboxes": [],
            "suggestions": [],
            "unresponsive_engines": [[name, "timeout"] for name in unresponsive],
        }
    )


def mediawiki(pages: Sequence[Page] = PAGES) -> Answer:
    """As action=query with generator=search and prop=extracts replies: pages by id, their rank in `index`; none, no query."""
    found = [
        {"pageid": 100 - rank, "ns": 0, "title": title, "index": rank, "extract": text, "fullurl": url}
        for rank, (url, title, text) in enumerate(pages, 1)
    ]
    reply: dict[str, Any] = {"batchcomplete": True}
    if found:
        reply |= {"continue": {"gsroffset": len(found)}, "query": {"pages": sorted(found, key=lambda page: page["pageid"])}}
    return sends(reply)


def both(body: Body) -> Answer:
    """A server of the two formats."""
    if body["path"] == "/search" and body.get("format") == "json":
        return searxng(body["q"])
    if body["path"] == "/w/api.php" and body.get("generator") == "search":
        return mediawiki(PAGES[: int(body["gsrlimit"])])
    return sends({"error": "no such page"}, 404)


def always_searching(stub: Stub) -> dict[str, Any]:
    """Settings of corrective that call every retrieval Incorrect and search a stub's SearXNG."""
    return {
        "k": 1,
        "max_tokens": 16,
        "grader": "cross_encoder",
        "relevance": {"tau": 0.5, "temperature": 1.0},
        "upper": 1.0,
        "lower": 1.0,
        "strips": "sentences",
        "strip_length": 1,
        "strip_filter": 0.0,
        "max_strips": 1,
        "elsewhere": "searxng",
        "web": {"base_url": stub.url.removesuffix("/v1"), "api_key_env": ""},
        "widen_factor": 1,
        "rewrite_tokens": 8,
    }


@dataclass(frozen=True)
class Wiki:
    """A MediaWiki with TextExtracts: its pages' texts and redirects by title, and which pages disambiguate.

    With `in_pieces` a page's text comes in a second reply, as it does when the first would be too long.
    """

    pages: Mapping[str, str]
    redirects: Mapping[str, str] = field(default_factory=dict)
    disambiguates: Collection[str] = ()
    in_pieces: bool = False
    endless: bool = False  # every piece says that another follows, always the same

    def __call__(self, body: Body) -> Answer:
        """As action=query with titles and prop=extracts|info|pageprops replies, in formatversion 2."""
        if (body["path"], body["action"], body["formatversion"], "extracts" in body["prop"]) != (
            "/w/api.php",
            "query",
            "2",
            True,
        ):
            return sends({"error": {"code": "badquery", "info": "Not what this wiki speaks"}})
        title = body["titles"].replace("_", " ")
        title = title[:1].upper() + title[1:]
        query: dict[str, Any] = {}
        if title != body["titles"]:
            query["normalized"] = [{"fromencoded": False, "from": body["titles"], "to": title}]
        if title in self.redirects:
            query["redirects"] = [{"from": title, "to": self.redirects[title]}]
        query["pages"] = [self._page(self.redirects.get(title, title), "excontinue" in body)]
        reply: dict[str, Any] = {"batchcomplete": True, "query": query}
        if self.endless or (self.in_pieces and "excontinue" not in body):
            reply = {"continue": {"excontinue": 1, "continue": "||info|pageprops"}, "query": query}
        return sends(reply)

    def _page(self, title: str, rest: bool) -> dict[str, Any]:
        if "[" in title:
            return {"title": title, "invalidreason": "The requested page title contains invalid characters.", "invalid": True}
        if title not in self.pages:
            return {"ns": 0, "title": title, "missing": True}
        number = 100 + list(self.pages).index(title)
        page: dict[str, Any] = {"pageid": number, "ns": 0, "title": title}
        if not rest:
            page |= {
                "contentmodel": "wikitext",
                "lastrevid": 10 * number,
                "length": len(self.pages[title]),
                "fullurl": f"https://wiki.example/wiki/{title.replace(' ', '_')}",
            }
            if title in self.disambiguates:
                page["pageprops"] = {"disambiguation": ""}
        if rest or not self.in_pieces:
            page["extract"] = self.pages[title]
        return page
