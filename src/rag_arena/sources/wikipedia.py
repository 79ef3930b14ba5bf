"""Pages of a MediaWiki, asked for by title through its API (TextExtracts), and a table of the user's questions about them.

A page is a document under its own title, which is also its id. A title that redirects stands for the page it leads to, and
two that lead to one page are one document; both are told. A title without a page, or of a disambiguation page, is refused. Every
reply is kept in the ledger, so that the same titles are asked for once.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.llm.lookups import Lookups, Site
from rag_arena.params import Wikipedia
from rag_arena.sources import sheet
from rag_arena.sources.files import present, text
from rag_arena.sources.questions import questions
from rag_arena.sources.table import Loaded

_ASKED = {  # one page at a time: the API gives no more than one whole text
    "action": "query",
    "format": "json",
    "formatversion": "2",
    "prop": "extracts|info|pageprops",
    "explaintext": "1",
    "exsectionformat": "plain",
    "exlimit": "1",
    "inprop": "url",
    "ppprop": "disambiguation",
    "redirects": "1",
    "maxlag": "5",
}
Title = tuple[str, str]  # where it stands, and what it says


def check(dataset: Wikipedia) -> None:
    """Are the titles and the questions there?

    Raises:
        ArenaError: a file is missing, or its suffix does not tell how to read it.
    """
    present(_path(dataset), "dataset.path and dataset.titles name it")
    sheet.check(Path(dataset.path, dataset.questions), "dataset.path and dataset.questions name it")


def load(dataset: Wikipedia, lookups: Lookups) -> Loaded:
    """The pages and the questions. Gold documents may be named by any title that leads to them.

    Raises:
        ArenaError: naming file and line, or the wiki's address; or as `questions`.
    """
    check(dataset)
    found = asyncio.run(_pages(dataset, lookups, _titles(_path(dataset))))
    pages = {page["title"]: page for _, page in found}
    names = {name: page["title"] for (_, title), page in found for name in (page["title"], title, *page["by_way_of"])}
    notes = [f"{where}: {title!r} leads to {page['title']!r}" for (where, title), page in found if title != page["title"]]
    corpus = [_document(page) for page in pages.values()]
    asked, more = questions(dataset, {row["doc_id"]: row["metadata"] for row in corpus}, names=names)
    return Loaded(corpus, asked, [], [*notes, *more])


def _path(dataset: Wikipedia) -> Path:
    return Path(dataset.path, dataset.titles)


def _titles(path: Path) -> list[Title]:
    """The lines of a file that are neither empty nor a comment."""
    lines = [(f"{path}:{number}", line.strip()) for number, line in enumerate(text(path).split("\n"), 1)]
    titles = [(where, line) for where, line in lines if line and not line.startswith("#")]
    if not titles:
        raise ArenaError(f"{path}: no titles; write one per line")
    for where, title in titles:
        if "|" in title:
            raise ArenaError(f"{where}: {title!r} is no title; write one per line")
    return titles


async def _pages(dataset: Wikipedia, lookups: Lookups, titles: Sequence[Title]) -> list[tuple[Title, Mapping[str, Any]]]:
    return [(title, await _page(dataset, lookups, *title)) for title in titles]  # in turn, as Wikimedia asks of its clients


async def _page(dataset: Wikipedia, lookups: Lookups, where: str, title: str) -> Mapping[str, Any]:
    """One page, whole however many replies it comes in."""
    page: dict[str, Any] = {}

    def read(reply: Any) -> Mapping[str, Any]:
        found = _page_of(reply, f"{where}: {title!r}")
        if "continue" not in reply and not {**page, **found}.get("extract", "").strip():
            raise ArenaError(f"{where}: {title!r} has no text, or the wiki not the extension TextExtracts; mend either")
        return found

    site = Site(dataset.base_url, "dataset.base_url", "a page", "this wiki is not open to everybody", read)
    identity = {"base_url": dataset.base_url, "engine": "wikipedia pages"}
    more: Mapping[str, str] = {}
    while True:
        entry, _ = await lookups.get(site, identity, {**_ASKED, "titles": title, **more})
        reply = json.loads(entry.reply)
        page |= read(reply)
        if "continue" not in reply:
            return page
        following = {key: str(value) for key, value in reply["continue"].items()}
        if following == more:
            raise ArenaError(
                f"{dataset.base_url}: continues {title!r} ({where}) with the same piece for ever; the wiki is broken"
            )
        more = following


def _page_of(reply: Any, named: str) -> Mapping[str, Any]:
    if "error" in reply:
        raise ValueError(reply["error"]["info"])
    pages = reply["query"].get("pages", [])
    if len(pages) != 1 or "missing" in pages[0] or "invalid" in pages[0]:
        raise ArenaError(f"{named} is no page of this wiki; mend or delete the line")
    if "disambiguation" in pages[0].get("pageprops", {}):
        raise ArenaError(f"{named} is a disambiguation page; name one of the pages that it lists")
    steps = [*reply["query"].get("normalized", []), *reply["query"].get("redirects", [])]
    return {**pages[0], "by_way_of": [step["to"] for step in steps]}


def _document(page: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "doc_id": page["title"],
        "title": page["title"],
        "text": page["extract"].strip(),
        "metadata": {"revision": str(page["lastrevid"]), "url": page["fullurl"]},
    }
