"""A local server that speaks the part of Qdrant's REST interface that the store uses, and answers from qdrant-client's memory."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from qdrant_client import QdrantClient, models

from tests.stub import listening

Body = dict[str, Any]
VERSION = "1.20.0"


@dataclass(frozen=True)
class Asked:
    """One request: method, path with its query, and body."""

    method: str
    path: str
    body: Body

    @property
    def is_upload(self) -> bool:
        return self.method == "PUT" and "/points" in self.path


class QdrantStub:
    """A running server. `refuse` may answer a request in Qdrant's place: with a status and a body, which is sent as it is."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = QdrantClient(":memory:")
        self.version = VERSION
        self.key = ""
        self.asked: list[Asked] = []
        self.refuse: Callable[[Asked], tuple[int, bytes] | None] = lambda _: None
        self._turn = threading.Lock()

    @property
    def collections(self) -> list[str]:
        return sorted(found.name for found in self.client.get_collections().collections)

    @property
    def uploads(self) -> list[list[int]]:
        """The point ids of every upload."""
        return [[point["id"] for point in asked.body["points"]] for asked in self.asked if asked.is_upload]

    def answer(self, asked: Asked, key: str) -> tuple[int, bytes]:
        with self._turn:
            self.asked.append(asked)
            if (refused := self.refuse(asked)) is not None:
                return refused
            if asked.path == "/":
                return 200, json.dumps({"title": "qdrant - vector search engine", "version": self.version}).encode()
            if self.key and key != self.key:
                return 401, b"Must provide an API key or an Authorization bearer token"
            status, result = self._done(asked)
        failed = {"status": {"error": result}, "time": 0.0}
        return status, json.dumps({"result": result, "status": "ok", "time": 0.0} if status == 200 else failed).encode()

    def _done(self, asked: Asked) -> tuple[int, Any]:
        if asked.path == "/collections":
            return 200, {"collections": [{"name": name} for name in self.collections]}
        name, _, action = asked.path.removeprefix("/collections/").partition("/")
        exists = self.client.collection_exists(name)
        if action == "exists":
            return 200, {"exists": exists}
        if asked.method == "PUT" and not action:
            return self._create(name, asked.body) if not exists else (409, f"Wrong input: Collection `{name}` already exists!")
        if not exists:
            return 404, f"Not found: Collection `{name}` doesn't exist!"
        does = {
            "points?wait=true": self._upsert,
            "points/count": self._count,
            "points/query": self._query,
            "index?wait=true": self._index,
        }
        return 200, does[action](name, asked.body)

    def _create(self, name: str, body: Body) -> tuple[int, Any]:
        wanted = models.CreateCollection(**body)
        self.client.create_collection(name, vectors_config=wanted.vectors, sparse_vectors_config=wanted.sparse_vectors)
        return 200, True

    def _upsert(self, name: str, body: Body) -> Body:
        self.client.upsert(name, models.PointsList(**body).points)
        return {"operation_id": 0, "status": "completed"}

    def _index(self, _: str, body: Body) -> Body:
        assert set(body) == {"field_name", "field_schema"}  # in memory a payload needs no index
        return {"operation_id": 0, "status": "completed"}

    def _count(self, name: str, _: Body) -> Body:
        return {"count": self.client.count(name).count}

    def _query(self, name: str, body: Body) -> Body:
        wanted = models.QueryRequest(**body)
        found = self.client.query_points(
            name,
            query=wanted.query,
            using=wanted.using,
            prefetch=wanted.prefetch,
            query_filter=wanted.filter,
            limit=wanted.limit or 10,
            with_payload=bool(wanted.with_payload),
        )
        return {"points": [{"id": point.id, "version": 0, "score": point.score} for point in found.points]}


@contextmanager
def serve_qdrant() -> Iterator[QdrantStub]:
    """A server on a free loopback port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.reply()

        def do_PUT(self) -> None:
            self.reply()

        def do_POST(self) -> None:
            self.reply()

        def reply(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked = Asked(self.command, self.path, json.loads(sent) if sent else {})
            status, content = stub.answer(asked, self.headers.get("api-key", ""))
            try:
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up, as a test wants

        def log_message(self, *_: object) -> None:
            """Silent."""

    with listening(Handler) as url:
        stub = QdrantStub(url)
        yield stub
