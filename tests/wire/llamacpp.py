"""llama.cpp's server, after tools/server; tests/llm/test_llamacpp.py holds it against the real one."""

from typing import Any

from tests.stub import Body, with_json
from tests.wire.server import Server, likeliest, usage


def _llamacpp_error(code: int, message: str, kind: str, **more: Any) -> Body:
    return {"error": {"code": code, "message": message, "type": kind, **more}}


def _llamacpp_chat(text: str, logprobs: Any) -> Body:
    choice = {"finish_reason": "length", "index": 0, "message": {"role": "assistant", "content": text}}
    if logprobs:
        ids = [{"id": i, **token} for i, token in enumerate(logprobs["content"][0]["top_logprobs"])]
        choice["logprobs"] = {"content": [{"id": 0, **logprobs["content"][0], "top_logprobs": ids}]}
    return {
        "choices": [choice],
        "created": 1753000000,
        "model": "qwen2.5-7b-instruct-q4_k_m.gguf",
        "system_fingerprint": "b6000-5f0c9c4f",
        "object": "chat.completion",
        "usage": usage(),
        "id": "chatcmpl-Zx6yjYAxWQbM1xqk3lNnVYB3Kkqb0Lde",
        "timings": {"prompt_n": 14, "prompt_ms": 31.2, "predicted_n": 16, "predicted_ms": 402.1},
    }


def _llamacpp_raw(count: int) -> Body:
    chat = _llamacpp_chat("", likeliest(count))
    choice = {"text": " Yes", "index": 0, "logprobs": chat["choices"][0]["logprobs"], "finish_reason": "length"}
    return {**chat, "object": "text_completion", "choices": [choice]}


LLAMACPP = Server(
    option="llamacpp",
    model="qwen2.5-7b-instruct-q4_k_m.gguf",
    models=[
        {
            "id": "qwen2.5-7b-instruct-q4_k_m.gguf",
            "object": "model",
            "created": 1753000000,
            "owned_by": "llamacpp",
            "meta": {
                "vocab_type": 2,
                "n_vocab": 152064,
                "n_ctx_train": 32768,
                "n_embd": 3584,
                "n_params": 7615616512,
                "size": 4677120000,
            },
        }
    ],
    chat=_llamacpp_chat,
    wrong_key=with_json(_llamacpp_error(401, "Invalid API Key", "authentication_error"), 401),
    unknown_model=None,
    too_long=with_json(
        _llamacpp_error(
            400,
            "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "exceed_context_size_error",
            n_prompt_tokens=9412,
            n_ctx=8192,
        ),
        400,
    ),
    busy=with_json(_llamacpp_error(503, "Loading model", "unavailable_error"), 503),
    raw=_llamacpp_raw,
    others={"/props": {"default_generation_settings": {"id": 0, "n_ctx": 8192}, "total_slots": 4, "model_path": "models/q.gguf"}},
)
