import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from qdrant_client import models

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.params import Store as StoreParams
from rag_arena.records import Document, Metadata
from rag_arena.retrieval import collection
from rag_arena.retrieval import server as serving
from rag_arena.retrieval.collection import Collection
from rag_arena.retrieval.index import Index
from tests.qdrantstub import Asked, QdrantStub, serve_qdrant
from tests.stub import unused_url

BATCH = 16
ROWS = 3 * BATCH + 10
BATCHES = [list(range(start, min(start + BATCH, ROWS))) for start in range(0, ROWS, BATCH)]
NONE_YET = (200, json.dumps({"result": {"exists": False}, "status": "ok", "time": 0.0}).encode())


@pytest.fixture
def qdrant(monkeypatch) -> Iterator[QdrantStub]:
    monkeypatch.setattr(serving, "_PAUSES_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(collection, "_BATCH", BATCH)
    with serve_qdrant() as running:
        yield running


def an_index(rows: int = ROWS, seed: int = 1, weight: float = 1.0, metadata: Metadata = ()) -> Index:
    dense = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32)
    terms = tuple((np.array([row % 7], np.uint32), np.array([weight], np.float32)) for row in range(rows))
    return Index(tuple(Document(f"d{row:04}", "", "x", metadata) for row in range(rows)), dense, terms)


def settings(qdrant: QdrantStub, **more) -> StoreParams:
    return StoreParams(backend="server", url=qdrant.url, **more)


def opened(qdrant: QdrantStub, held: Index, **more) -> Collection:
    return Collection.on_server(settings(qdrant, **more), held)


def refusal(qdrant: QdrantStub, held: Index | None = None, **more) -> str:
    """What the one line says after the URL."""
    with pytest.raises(ArenaError) as caught:
        opened(qdrant, held or an_index(3), **more)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(qdrant.url)
    return said.removeprefix(qdrant.url)


def held_by(qdrant: QdrantStub) -> int:
    (name,) = qdrant.collections
    return qdrant.client.count(name).count


def test_an_index_is_uploaded_in_batches_that_are_waited_for(qdrant):
    opened(qdrant, an_index())
    assert qdrant.uploads == BATCHES
    assert all(asked.path.endswith("?wait=true") for asked in qdrant.asked if asked.is_upload)


def test_a_finished_upload_is_not_repeated(qdrant):
    for _ in range(2):
        opened(qdrant, an_index())
    assert qdrant.uploads == BATCHES


@pytest.mark.parametrize("fails_at", [0, 1, 3])
def test_an_upload_that_broke_off_goes_on_where_it_stopped(qdrant, fails_at):
    qdrant.refuse = lambda asked: (400, b"disk full") if asked.is_upload and len(qdrant.uploads) > fails_at else None
    assert refusal(qdrant, an_index()).endswith(": 400 disk full")
    assert held_by(qdrant) == min(fails_at * BATCH, ROWS)
    qdrant.refuse = lambda _: None
    opened(qdrant, an_index())
    assert qdrant.uploads == [*BATCHES[: fails_at + 1], *BATCHES[fails_at:]]
    assert held_by(qdrant) == ROWS


def test_a_batch_that_is_there_in_part_is_uploaded_again(qdrant):
    def half_the_second(asked: Asked) -> tuple[int, bytes] | None:
        if not asked.is_upload or len(qdrant.uploads) != 2:
            return None
        name = asked.path.split("/")[2]
        half = {"points": asked.body["points"][BATCH // 2 :]}
        qdrant._upsert(name, half)
        return 400, b"killed"

    qdrant.refuse = half_the_second
    refusal(qdrant, an_index())
    assert held_by(qdrant) == BATCH + BATCH // 2
    qdrant.refuse = lambda _: None
    opened(qdrant, an_index())
    assert qdrant.uploads == [*BATCHES[:2], *BATCHES[1:]]
    assert held_by(qdrant) == ROWS


def test_processes_that_upload_the_same_index_at_once_end_with_one_whole_collection(qdrant):
    held = an_index()
    threads = [threading.Thread(target=opened, args=(qdrant, held)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held_by(qdrant) == ROWS
    assert {row for upload in qdrant.uploads for row in upload} == set(range(ROWS))


def test_a_collection_that_another_process_has_just_made_is_used(qdrant):
    opened(qdrant, an_index(3))
    asked_before = len(qdrant.asked)
    qdrant.refuse = lambda asked: NONE_YET if asked.path.endswith("/exists") and not _created(qdrant, asked_before) else None
    opened(qdrant, an_index(3))
    assert _created(qdrant, asked_before)
    assert held_by(qdrant) == 3


def _created(qdrant: QdrantStub, since: int) -> bool:
    return any(asked.method == "PUT" and asked.path.count("/") == 2 for asked in qdrant.asked[since:])


@pytest.mark.parametrize(
    "other",
    [an_index(3, seed=2), an_index(3, weight=2.0), an_index(4), an_index(3, metadata=(("tenant", "a"),))],
    ids=["vectors", "weights", "documents", "metadata"],
)
def test_two_indexes_never_share_a_collection(qdrant, other):
    opened(qdrant, an_index(3))
    opened(qdrant, other)
    assert len(qdrant.collections) == 2


def test_exact_and_approximate_search_have_collections_of_their_own(qdrant):
    opened(qdrant, an_index(3))
    opened(qdrant, an_index(3), exact=False)
    assert len(qdrant.collections) == 2


@pytest.mark.parametrize(("exact", "graph"), [(True, {"m": 0}), (False, None)])
def test_a_collection_is_one_shard_and_has_a_graph_only_where_search_may_be_approximate(qdrant, exact, graph):
    found = opened(qdrant, an_index(3), exact=exact)
    (made,) = (asked.body for asked in qdrant.asked if asked.method == "PUT" and asked.path.count("/") == 2)
    assert made == {
        "vectors": {"dense": {"size": 4, "distance": "Cosine"}},
        "sparse_vectors": {"sparse": {"modifier": "idf"}},
        "shard_number": 1,
        **({"hnsw_config": graph} if graph else {}),
    }
    found.query(query=[1.0, 0.0, 0.0, 0.0], using="dense", limit=1)
    assert qdrant.asked[-1].body["params"] == {"exact": exact}


def test_metadata_are_indexed_before_the_upload_under_their_own_names(qdrant):
    opened(qdrant, an_index(3, metadata=(("language", "en"), ("tenant.of document", "a"))))
    (upload,) = (place for place, asked in enumerate(qdrant.asked) if asked.is_upload)
    indexed = [asked.body for asked in qdrant.asked[:upload] if "/index" in asked.path]
    assert indexed == [{"field_name": f'"{name}"', "field_schema": "keyword"} for name in ("language", "tenant.of document")]
    assert qdrant.asked[upload].body["points"][0]["payload"] == {"language": "en", "tenant.of document": "a"}


def test_points_beyond_the_index_are_refused(qdrant):
    held = an_index(3)
    opened(qdrant, held)
    (name,) = qdrant.collections
    qdrant.client.upsert(name, [models.PointStruct(id=7, vector={"dense": [1.0, 0.0, 0.0, 0.0]})])
    assert refusal(qdrant, held) == f": {name}: holds 4 points instead of 3; delete the collection and run again"


def test_a_refusal_that_passes_is_tried_again(qdrant):
    refused = []
    qdrant.refuse = lambda asked: (503, b"") if asked.is_upload and not refused and not refused.append(asked) else None
    opened(qdrant, an_index(3))
    assert qdrant.uploads == [[0, 1, 2], [0, 1, 2]]
    assert held_by(qdrant) == 3


def test_a_refusal_that_stays_is_told(qdrant):
    qdrant.refuse = lambda asked: (500, b"WAL buffer size exceeds available disk space") if asked.is_upload else None
    assert refusal(qdrant).endswith(": 500 WAL buffer size exceeds available disk space")
    assert len(qdrant.uploads) == 4


def test_nobody_answers(monkeypatch):
    monkeypatch.setattr(serving, "_PAUSES_S", ())
    url = unused_url().removesuffix("/v1")
    with pytest.raises(EndpointError, match=rf"^{url}: nobody answers \(.*refused\); start Qdrant or mend store\.url$"):
        serving.connect(StoreParams(backend="server", url=url))


def test_a_server_that_takes_too_long_is_told(qdrant, monkeypatch):
    monkeypatch.setattr(serving, "_PAUSES_S", ())
    monkeypatch.setattr(serving, "_DEADLINE_S", 1)
    never = threading.Event()
    qdrant.refuse = lambda _: never.wait(1.5) or None
    assert refusal(qdrant) == ": no reply within 1 s; give the server more memory or processors"


def test_the_key_comes_from_the_environment(qdrant, monkeypatch):
    qdrant.key = "a-secret-of-its-own"
    monkeypatch.setenv("QDRANT_API_KEY", qdrant.key)
    opened(qdrant, an_index(3), api_key_env="QDRANT_API_KEY")
    assert held_by(qdrant) == 3


def test_a_wrong_key_is_refused_without_being_shown(qdrant, monkeypatch):
    qdrant.key = "a-secret-of-its-own"
    monkeypatch.setenv("QDRANT_API_KEY", "another-secret")
    assert refusal(qdrant, api_key_env="QDRANT_API_KEY") == ": refuses the key (401); check store.api_key_env"


def test_a_key_that_is_not_set_is_named(qdrant, monkeypatch):
    monkeypatch.delenv("QDRANT_API_KEY", raising=False)
    assert (
        refusal(qdrant, api_key_env="QDRANT_API_KEY") == ": needs a key; set QDRANT_API_KEY, or store.api_key_env to '' for none"
    )
    assert qdrant.asked == []


@pytest.mark.parametrize("content", [b"<html>It works!</html>", b'{"message": "hello"}', b""], ids=["html", "json", "nothing"])
def test_a_server_that_is_no_qdrant_is_told(qdrant, content):
    qdrant.refuse = lambda _: (200, content)
    assert refusal(qdrant) == ": answers, but not as Qdrant does; mend store.url"


def test_a_path_that_does_not_exist_is_told(qdrant):
    qdrant.refuse = lambda _: (404, b"<html>\nno such page</html>")
    assert refusal(qdrant) == ": 404 <html> no such page</html>; check store.url"


def test_a_path_under_which_there_is_no_qdrant_is_told(qdrant):
    qdrant.refuse = lambda asked: (404, b"no such page") if asked.path.startswith("/vectors/") else None
    with pytest.raises(EndpointError, match=r"/vectors/: 404 no such page; there is no Qdrant under /vectors, mend store\.url$"):
        serving.connect(StoreParams(backend="server", url=f"{qdrant.url}/vectors/"))


def test_a_collection_deleted_under_way_is_told(qdrant):
    found = opened(qdrant, an_index(3))
    (name,) = qdrant.collections
    qdrant.client.delete_collection(name)
    with pytest.raises(EndpointError, match=rf"404 .*Collection `{name}` doesn't exist!.*; check store\.url$"):
        found.query(query=[1.0, 0.0, 0.0, 0.0], using="dense", limit=1)


@pytest.mark.parametrize(("version", "noted"), [("1.20.3", False), ("1.19.0", False), ("1.12.4", True), ("2.0.0", True)])
def test_a_server_of_a_version_far_from_the_clients_is_noted_in_one_line(qdrant, capsys, version, noted):
    qdrant.version = version
    opened(qdrant, an_index(3))
    said = capsys.readouterr().err
    assert said.count("\n") == noted
    assert (f"Qdrant {version} is over a minor version away" in said) == noted
