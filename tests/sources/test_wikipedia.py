"""Pages of a wiki by their titles, over real sockets, from a server that speaks MediaWiki's API."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag_arena import artifacts, sources
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.ledger import Ledger
from rag_arena.llm.lookups import Lookups
from rag_arena.params import Transport, Wikipedia, section
from rag_arena.sources.table import Loaded
from tests.project import Project
from tests.stub import Answer, Stub, unused_url
from tests.webstub import Wiki, sends

PAGES = {
    "Rhine": "The Rhine begins in the Alps.\n\n\nCourse\nIt ends in the North Sea.",
    "Black Forest": "The Black Forest is a range of mountains.",
    "Mercury": "Mercury may refer to: a planet, or a metal.",
    "Empty": " \n",
}
WIKI = Wiki(PAGES, {"Rhein": "Rhine", "River Rhine": "Rhine"}, {"Mercury"})
TITLES = "# two articles\nRhein\n\nblack_Forest\n"
QUESTIONS = (
    "question,answer,gold_ids\nWhere does the Rhine begin?,the Alps,Rhein\nWhat is the Black Forest?,mountains,Black Forest\n"
)


def asked_of(folder: Path, url: str, titles: str = TITLES, questions: str = QUESTIONS, **settings: Any) -> Wikipedia:
    (folder / "titles.txt").write_text(titles, encoding="utf-8")
    (folder / "questions.csv").write_text(questions, encoding="utf-8")
    values = {
        "name": "wiki",
        "kind": "wikipedia",
        "path": str(folder),
        "licence": "CC-BY-SA-4.0",
        "titles": "titles.txt",
        "questions": "questions.csv",
        "base_url": url,
        "columns": {},
        **settings,
    }
    return section(Wikipedia, values, "params.yaml", "dataset.")


def api(stub: Stub) -> str:
    return stub.url.removesuffix("/v1") + "/w/api.php"


def read(folder: Path, stub: Stub, ledger: Ledger, *texts: str, retries: int = 0) -> Loaded:
    transport = Transport(max_concurrency=4, deadline_s=5.0, max_retries=retries)
    return sources.load(asked_of(folder, api(stub), *texts), lambda: Lookups(ledger, transport))


@pytest.fixture(autouse=True)
def _is_a_wiki(stub: Stub) -> None:
    stub.behave = WIKI


def test_pages_become_documents_under_their_own_titles(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    found = read(tmp_path, stub, ledger)
    assert found.corpus == [
        {
            "doc_id": "Rhine",
            "title": "Rhine",
            "text": PAGES["Rhine"],
            "metadata": {"revision": "1000", "url": "https://wiki.example/wiki/Rhine"},
        },
        {
            "doc_id": "Black Forest",
            "title": "Black Forest",
            "text": PAGES["Black Forest"],
            "metadata": {"revision": "1010", "url": "https://wiki.example/wiki/Black_Forest"},
        },
    ]


def test_gold_documents_go_by_any_title_that_leads_to_them(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    assert [row["gold_ids"] for row in read(tmp_path, stub, ledger).questions] == [["Rhine"], ["Black Forest"]]


@pytest.mark.parametrize("gold", ["river_Rhine", "River Rhine", "Rhine"])
def test_gold_documents_go_by_every_title_on_the_way_to_a_page(tmp_path: Path, stub: Stub, ledger: Ledger, gold: str) -> None:
    asked = f"question,answer,gold_ids\nWhere?,there,{gold}\n"
    assert read(tmp_path, stub, ledger, "river_Rhine\n", asked).questions[0]["gold_ids"] == ["Rhine"]


def test_questions_need_no_gold_documents(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    assert read(tmp_path, stub, ledger, TITLES, "question,answer\nWhere?,there\n").questions[0]["gold_ids"] == []


def test_a_title_that_leads_elsewhere_is_told(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    assert read(tmp_path, stub, ledger).notes == [
        f"{tmp_path}/titles.txt:2: 'Rhein' leads to 'Rhine'",
        f"{tmp_path}/titles.txt:4: 'black_Forest' leads to 'Black Forest'",
    ]


def test_two_titles_of_one_page_are_one_document(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    found = read(
        tmp_path, stub, ledger, "Rhein\nRhine\nRiver Rhine\n", "question,answer,gold_ids\nWhere?,there,Rhein|River Rhine\n"
    )
    assert [row["doc_id"] for row in found.corpus] == ["Rhine"]
    assert found.questions[0]["gold_ids"] == ["Rhine"]


def test_a_page_is_asked_for_whole_as_plain_text_following_redirects_and_with_regard_for_lag(
    tmp_path: Path, stub: Stub, ledger: Ledger
) -> None:
    read(tmp_path, stub, ledger)
    assert [body["titles"] for body in stub.requests] == ["Rhein", "black_Forest"]
    asked = stub.requests[0]
    assert (asked["explaintext"], asked["exlimit"], asked["redirects"], asked["maxlag"]) == ("1", "1", "1", "5")
    assert "exintro" not in asked
    assert all(headers["user-agent"].startswith("rag-arena/") for headers in stub.headers)


def test_a_page_that_comes_in_pieces_is_put_together(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    whole = read(tmp_path, stub, ledger).corpus
    stub.behave = Wiki(PAGES, WIKI.redirects, in_pieces=True)
    with closing(Ledger(tmp_path / "other.sqlite")) as other:
        assert read(tmp_path, stub, other).corpus == whole
    assert len(stub.requests) == 2 + 2 * 2


def test_a_page_that_never_ends_is_refused(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    stub.behave = Wiki(PAGES, WIKI.redirects, endless=True)
    with pytest.raises(ArenaError, match=r"continues 'Rhein' \(.*titles\.txt:2\) with the same piece for ever"):
        read(tmp_path, stub, ledger)


def test_the_same_titles_are_asked_for_once(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    first = read(tmp_path, stub, ledger)
    asked = len(stub.requests)
    stub.behave = lambda body: sends({}, 500)
    assert read(tmp_path, stub, ledger) == first
    assert len(stub.requests) == asked


def test_a_wiki_that_is_busy_is_asked_again(tmp_path: Path, stub: Stub, ledger: Ledger) -> None:
    busy = sends({"error": {"code": "maxlag", "info": "Waiting for db1: 7 seconds lagged", "lag": 7}})
    stub.behave = lambda body: WIKI(body) if len(stub.requests) > 1 else busy
    assert len(read(tmp_path, stub, ledger, retries=1).corpus) == 2


@pytest.mark.parametrize(
    ("titles", "told"),
    [
        ("Rhine\nRhone\n", "titles.txt:2: 'Rhone' is no page of this wiki; mend or delete the line"),
        ("Rhine\n[Rhine\n", r"titles.txt:2: '\[Rhine' is no page of this wiki; mend or delete the line"),
        ("Mercury\n", "titles.txt:1: 'Mercury' is a disambiguation page; name one of the pages that it lists"),
        ("Rhine|Elbe\n", r"titles.txt:1: 'Rhine\|Elbe' is no title; write one per line"),
        ("Empty\n", "titles.txt:1: 'Empty' has no text, or the wiki not the extension TextExtracts; mend either"),
        ("# nothing\n\n", "titles.txt: no titles; write one per line"),
    ],
)
def test_a_title_without_a_page_is_told_with_its_line(tmp_path: Path, stub: Stub, ledger: Ledger, titles: str, told: str) -> None:
    with pytest.raises(ArenaError, match=f"^{tmp_path}/{told}$"):
        read(tmp_path, stub, ledger, titles)


@pytest.mark.parametrize(("wiki", "told"), [(WIKI, "is no page"), (Wiki({"Rhone": ""}), "has no text")])
def test_a_title_that_had_no_page_is_found_once_it_has_one(
    tmp_path: Path, stub: Stub, ledger: Ledger, wiki: Wiki, told: str
) -> None:
    stub.behave = wiki
    with pytest.raises(ArenaError, match=f"'Rhone' {told}"):
        read(tmp_path, stub, ledger, "Rhone\n", "question,answer\nWhere?,there\n")
    stub.behave = Wiki({"Rhone": "The Rhone is a river."})
    assert read(tmp_path, stub, ledger, "Rhone\n", "question,answer\nWhere?,there\n").corpus[0]["doc_id"] == "Rhone"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            sends({"error": {"code": "internal_api_error", "info": "Caught an exception"}}),
            r"200 without a page \(Caught an exception\)",
        ),
        (sends({"batchcomplete": True}), r"200 without a page \(JSON of another shape\)"),
        (Answer(content=b"<html>A wiki</html>"), r"200 without a page \(.+\): <html>A wiki</html>"),
        (sends({"query": {"interwiki": [{"title": "de:Rhein", "iw": "de"}]}}), "'Rhein' is no page of this wiki"),
        (sends({}, 404), r"404; mend dataset\.base_url"),
        (sends({}, 403), "403; "),
    ],
)
def test_a_reply_that_is_no_page_is_told_in_one_line(
    tmp_path: Path, stub: Stub, ledger: Ledger, answer: Answer, told: str
) -> None:
    stub.behave = lambda body: answer
    with pytest.raises(ArenaError, match=told) as refused:
        read(tmp_path, stub, ledger)
    assert "\n" not in str(refused.value)


def test_a_wiki_that_nobody_serves_is_told_by_its_address(tmp_path: Path, ledger: Ledger) -> None:
    transport = Transport(max_concurrency=1, deadline_s=5.0, max_retries=0)
    with pytest.raises(EndpointError, match=r"nobody answers \(.+\); start the server or mend dataset\.base_url$"):
        sources.load(asked_of(tmp_path, unused_url()), lambda: Lookups(ledger, transport))


@pytest.mark.parametrize("url", ["en.wikipedia.org/w/api.php", "https://user:hunter2@wiki.example/w/api.php"])
def test_an_address_must_be_one_and_hold_no_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(ArenaError, match=r"^params\.yaml: dataset.*base_url") as refused:
        asked_of(tmp_path, url)
    assert "hunter2" not in str(refused.value)


# The command line


def test_pages_are_downloaded_once_and_cut_into_chunks(project: Project, stub: Stub) -> None:
    folder = project.folder / "wiki"
    folder.mkdir()
    dataset = asked_of(folder, api(stub), chunking={"characters": 40, "overlap": 10})
    project.change({"dataset": dataset.model_dump(mode="json") | {"path": "wiki"}})
    said = project.ok("download").splitlines()
    assert said[0] == "4 chunks of 2 documents, 2 questions, 0 supporting facts unresolved"
    assert said[1] == "note: wiki/titles.txt:2: 'Rhein' leads to 'Rhine'"
    made = project.read("data/corpus.parquet", artifacts.CORPUS)
    assert [row["doc_id"] for row in made] == ["Black Forest¶1", "Black Forest¶2", "Rhine¶1", "Rhine¶2"]
    assert {row["title"]: dict(row["metadata"])["revision"] for row in made} == {"Black Forest": "1010", "Rhine": "1000"}
    stub.behave = lambda body: sends({}, 500)
    (project.folder / "data/corpus.parquet").unlink()
    project.ok("download")
    assert project.read("data/corpus.parquet", artifacts.CORPUS) == made
    assert "dataset: wiki: 4 chunks of 2 documents, 2 questions" in project.arena("doctor").stdout
