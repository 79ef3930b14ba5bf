"""A Hugging Face hub with one dataset, as far as `datasets` asks it: revisions, trees, information on paths, and files."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

from tests.stub import listening

REPOSITORY, COMMIT = "Chaplain0908/RAGRouter", "c0ffee0000000000000000000000000000000000"


@contextmanager
def hub(files: Mapping[str, str]) -> Iterator[str]:
    """Serve files by path in the dataset, at the commit that `main` names; gives the hub's address."""
    contents = {path: text.encode() for path, text in files.items()}
    entries = [{"type": "file", "path": path, "size": len(body), "oid": _etag(body)} for path, body in contents.items()]

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            path = unquote(self.path.partition("?")[0])
            for revision in ("main", COMMIT):
                if path == f"/api/datasets/{REPOSITORY}/revision/{revision}":
                    return self._send({"id": REPOSITORY, "sha": COMMIT, "siblings": [{"rfilename": f} for f in contents]})
                if path.startswith(f"/api/datasets/{REPOSITORY}/tree/{revision}"):
                    below = path.removeprefix(f"/api/datasets/{REPOSITORY}/tree/{revision}").strip("/")
                    return self._send([entry for entry in entries if str(entry["path"]).startswith(below)])
                file = path.removeprefix(f"/datasets/{REPOSITORY}/resolve/{revision}/")
                if file in contents:
                    return self._send_bytes(contents[file])
            if f"/{REPOSITORY}/" not in path:
                return self._refuse("RepoNotFound")
            return self._refuse("RevisionNotFound" if "/revision/" in path else "EntryNotFound")

        do_HEAD = do_GET  # noqa: N815

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            return self._send([entry for entry in entries if str(entry["path"]) in unquote(asked)])

        def _send(self, reply: object) -> None:
            self._send_bytes(json.dumps(reply).encode())

        def _send_bytes(self, body: bytes) -> None:
            self.send_response(200)
            for name, value in {"Content-Length": len(body), "ETag": f'"{_etag(body)}"', "X-Repo-Commit": COMMIT}.items():
                self.send_header(name, str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _refuse(self, code: str) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with listening(Handler) as url:
        yield url


def _etag(body: bytes) -> str:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()
