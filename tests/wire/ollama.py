"""Ollama, after openai/openai.go."""

from typing import Any

from tests.stub import Body, with_json
from tests.wire.server import Server, likeliest, usage


def _ollama_error(message: str, kind: str) -> Body:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _ollama_chat(text: str, logprobs: Any) -> Body:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    return {
        "id": "chatcmpl-415",
        "object": "chat.completion",
        "created": 1763000000,
        "model": "llama3.2",
        "system_fingerprint": "fp_ollama",
        "choices": [{**choice, "logprobs": logprobs} if logprobs else choice],
        "usage": usage(),
    }


def _ollama_raw(_: int) -> Body:
    choice = {"text": " Yes", "index": 0, "finish_reason": "length", "logprobs": likeliest(0)}
    return {
        "id": "cmpl-101",
        "object": "text_completion",
        "created": 1763000000,
        "model": "llama3.2",
        "system_fingerprint": "fp_ollama",
        "choices": [choice],
        "usage": usage(),
    }


OLLAMA = Server(
    option="ollama",
    model="llama3.2",
    models=[
        {"id": name, "object": "model", "created": 1763000000, "owned_by": "library"}
        for name in ("llama3.2:latest", "qwen3:8b", "gemma3:4b")
    ],
    chat=_ollama_chat,
    wrong_key=with_json({"error": "unauthorized"}, 401),
    unknown_model=with_json(_ollama_error("model 'llama3' not found", "not_found_error"), 404),
    too_long=with_json(_ollama_error("input length exceeds the context length", "invalid_request_error"), 400),
    busy=with_json(_ollama_error("server busy, please try again.  maximum pending requests exceeded", "api_error"), 503),
    raw=_ollama_raw,
    others={"/api/ps": {"models": [{"name": "llama3.2:latest", "model": "llama3.2:latest", "context_length": 4096}]}},
)
