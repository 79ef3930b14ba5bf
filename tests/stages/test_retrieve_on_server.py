"""The command line with its store on a server."""

from rag_arena.retrieval import server
from tests.project import Project
from tests.qdrantstub import serve_qdrant
from tests.stub import unused_url

FOUND = "data/retrieved/dense/hits.parquet"


def test_a_stage_finds_on_a_server_what_it_finds_in_memory(project: Project) -> None:
    in_memory = (project.folder / FOUND).read_bytes()
    (project.folder / FOUND).unlink()
    with serve_qdrant() as qdrant:
        project.change({"store": {"backend": "server", "url": qdrant.url}})
        project.ok("retrieve", "dense")
        assert len(qdrant.uploads) == 1
    assert (project.folder / FOUND).read_bytes() == in_memory


def test_a_server_that_is_down_ends_the_stage_with_one_line(project: Project, monkeypatch) -> None:
    monkeypatch.setattr(server, "_PAUSES_S", ())
    before = (project.folder / FOUND).read_bytes()
    url = unused_url().removesuffix("/v1")
    project.change({"store": {"backend": "server", "url": url}})
    done = project.arena("retrieve", "dense")
    assert done.returncode == 1
    assert done.stderr.startswith(f"arena: {url}: nobody answers (")
    assert done.stderr.endswith("; start Qdrant or mend store.url\n")
    assert done.stderr.count("\n") == 1
    assert (project.folder / FOUND).read_bytes() == before
