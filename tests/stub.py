"""A local server that speaks the wire format of completions, chat and raw: real sockets, replies by the request alone."""

import hashlib
import json
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Body = dict[str, Any]


@dataclass
class Answer:
    """What the server sends: a status, headers and raw bytes, after a pause, at `drip_s` seconds a byte if that is set."""

    status: int = 200
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    drip_s: float = 0.0


def with_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """A reply that is JSON, whatever it says."""
    return Answer(status, json.dumps(value).encode(), {"content-type": "application/json", **(headers or {})})


def completion(
    text: str | None, finish_reason: str = "stop", model: str = "stub", tokens: Sequence[tuple[str, Mapping[str, float]]] = ()
) -> Answer:
    """A well-formed reply. Tokens are counted as words; those given carry the probability of each alternative in their place."""
    reply: Body = {
        "id": "stub",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}}],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": len((text or "").split()),
            "total_tokens": 10 + len((text or "").split()),
        },
    }
    if tokens:
        reply["choices"][0]["logprobs"] = {"content": [_token(said, alternatives) for said, alternatives in tokens]}
    return Answer(content=json.dumps(reply).encode(), headers={"content-type": "application/json"})


def _token(said: str, alternatives: Mapping[str, float]) -> Body:
    likeliest = sorted(alternatives.items(), key=lambda item: -item[1])
    top = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in likeliest]
    return {"token": said, "logprob": math.log(alternatives[said]), "bytes": None, "top_logprobs": top}


def raw_completion(tokens: Sequence[tuple[str, Mapping[str, float]]], finish_reason: str = "stop") -> Answer:
    """A well-formed reply of the completions endpoint; each token with the probability of each alternative in its place."""
    said = [token for token, _ in tokens]
    logs = [{token: math.log(p) for token, p in alternatives.items()} for _, alternatives in tokens]
    logprobs = {
        "text_offset": [len("".join(said[:position])) for position in range(len(said))],
        "tokens": said,
        "token_logprobs": [log[token] for token, log in zip(said, logs, strict=True)],
        "top_logprobs": logs,
    }
    reply = {
        "id": "stub",
        "object": "text_completion",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "finish_reason": finish_reason, "text": "".join(said), "logprobs": logprobs}],
        "usage": {"prompt_tokens": 10, "completion_tokens": len(said), "total_tokens": 10 + len(said)},
    }
    return Answer(content=json.dumps(reply).encode(), headers={"content-type": "application/json"})


def one_token(probabilities: Mapping[str, float]) -> Answer:
    """A reply of one token, the likeliest of those given, with the probability of each."""
    said = max(probabilities, key=lambda token: probabilities[token])
    return completion(said, "length", tokens=[(said, probabilities)])


def words(text: str, probability: float, finish_reason: str = "stop") -> Answer:
    """A reply whose every word is a token of the same probability."""
    pieces = re.findall(r"\s*\S+", text)
    return completion(text, finish_reason, tokens=[(piece, {piece: probability}) for piece in pieces])


VERDICTS = ("Yes", "No", "Fully", "Partially", "1", "2", "3", "4", "5", "A", "B", "C")


def sensible(body: Body) -> Answer:
    """The default behaviour, a function of the prompt's hash.

    A list of one model; a short answer; valid JSON for ragas's three schemas and for a verdict; where log-probabilities are asked
    for, tokens with theirs, and in place of a single token every word that a verdict of ours may be.
    """
    if "path" in body:
        stub = {"id": "stub", "object": "model", "created": 0, "owned_by": "tests"}
        return with_json({"object": "list", "data": [stub]}, 200 if body["path"] == "/v1/models" else 404)
    prompt = body["messages"][-1]["content"]
    shape = body.get("response_format", {}).get("json_schema", {})
    schema = shape.get("name")
    digest = hashlib.sha256(prompt.encode()).hexdigest()
    if schema == "verdict":
        choices = shape["schema"]["properties"]["verdict"]["enum"]
        return completion(json.dumps({"verdict": choices[int(digest, 16) % len(choices)]}))
    if schema == "AnswerAccuracyOutput":
        return completion(json.dumps({"rating": (0, 2, 4)[int(digest, 16) % 3]}))
    if schema == "StatementGeneratorOutput":
        return completion(json.dumps({"statements": [_last_input(prompt)["answer"]]}))
    if schema == "NLIStatementOutput":
        verdicts = [{"statement": s, "reason": "stub", "verdict": int(digest, 16) % 2} for s in _last_input(prompt)["statements"]]
        return completion(json.dumps({"statements": verdicts}))
    if body.get("logprobs"):
        weights = [1 + int(digest[i], 16) for i in range(len(VERDICTS))]
        if 1 in (body.get("max_tokens"), body.get("max_completion_tokens")):
            return one_token({word: weight / sum(weights) for word, weight in zip(VERDICTS, weights, strict=True)})
        return words(f"answer {digest[:6]}", weights[0] / 16)
    return completion(f"answer {digest[:6]}")


def _last_input(prompt: str) -> Any:
    """The input that a ragas prompt ends with."""
    return json.loads(re.split(r"\ninput: ", prompt)[-1].rsplit("\nOutput:", 1)[0])


# How a server refuses every request alike, and what is said of it after its URL.
REFUSALS = [
    (401, "refuses the key (401); check OPENAI_API_KEY"),
    (403, "refuses the key (403); check OPENAI_API_KEY"),
    (404, "404; check llm.endpoint.base_url and llm.endpoint.model (stub)"),
]


def unused_url() -> str:
    """Where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


class Stub:
    """A running server. `requests` holds every request body in order of arrival (of a GET its path and query); `behave` may be
    replaced at any time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.paths: list[str] = []
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.behave: Callable[[Body], Answer] = sensible

    @property
    def prompts(self) -> list[str]:
        """The user messages and the raw prompts asked so far."""
        return [body["prompt"] if "prompt" in body else body["messages"][-1]["content"] for body in self.requests]


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of a server on a free loopback port."""
    handler.disable_nagle_algorithm = True  # else every reply waits 40 ms for the client to acknowledge its headers
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serve(behave: Callable[[Body], Answer] = sensible) -> Iterator[Stub]:
    """A server that behaves as told."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            stub.paths.append(self.path)
            length = int(self.headers["content-length"])
            sent = self.rfile.read(length)
            if len(sent) == length:  # else the client was stopped meanwhile
                self.reply_to(json.loads(sent))

        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            self.reply_to({"path": asked.path, **dict(parse_qsl(asked.query))})

        def reply_to(self, body: Body) -> None:
            stub.requests.append(body)
            stub.headers.append(dict(self.headers))
            answer = stub.behave(body)
            time.sleep(answer.pause_s)
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(answer.content)))
                self.end_headers()
                if answer.drip_s:
                    for i in range(len(answer.content)):
                        self.wfile.write(answer.content[i : i + 1])
                        self.wfile.flush()
                        time.sleep(answer.drip_s)
                else:
                    self.wfile.write(answer.content)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up, as some tests want

        def log_message(self, *_: object) -> None:
            """Silent."""

    with listening(Handler) as url:
        stub = Stub(f"{url}/v1")
        stub.behave = behave
        yield stub
