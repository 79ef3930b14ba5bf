"""Model servers as they speak: a reply of each kind in the server's own shape.

After platform.openai.com/docs/api-reference, console.groq.com/docs, and the sources of vLLM (vllm/entrypoints/openai), Ollama
(openai/openai.go) and llama.cpp (tools/server).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.stub import Answer, Body, Stub, with_json

# What the one token of a verdict is likely to be; twenty alternatives, as all but Groq give.
LIKELIEST = {" Yes": 0.75, " No": 0.125, **{f" {letter}": 0.125 / 2**i for i, letter in enumerate("abcdefghijklmopqrs", 1)}}
VERDICT = '{"verdict": "Yes"}'


@dataclass(frozen=True)
class Server:
    """One server's replies, by the option of conf/llm that is meant for it."""

    option: str
    model: str
    models: Sequence[Mapping[str, Any]]  # entries of GET /v1/models
    chat: Callable[[str, Any], Body]  # a reply with this text and these log-probabilities
    wrong_key: Answer
    unknown_model: Answer | None  # None: any name will do
    too_long: Answer
    busy: Answer | None
    refused: Mapping[str, Answer] = field(default_factory=dict)  # by a field that it does not take
    raw: Callable[[int], Body] | None = None  # a raw completion with so many alternatives
    others: Mapping[str, Body] = field(default_factory=dict)  # further paths that may be read
    key: str = ""  # empty: none is asked for

    def behaviour(self, stub: Stub) -> Callable[[Body], Answer]:
        """How it answers, for the stub server to do the same."""

        def behave(body: Body) -> Answer:
            authorised = {name.lower(): value for name, value in stub.headers[-1].items()}.get("authorization")
            if self.key and authorised != f"Bearer {self.key}":
                return self.wrong_key
            if "path" in body:
                listed = {"/v1/models": {"object": "list", "data": list(self.models)}, **self.others}.get(body["path"])
                return with_json(listed) if listed else with_json({"detail": "Not Found"}, 404)
            names = [entry["id"].removesuffix(":latest") for entry in self.models]
            if self.unknown_model and body["model"].removesuffix(":latest") not in names:
                return self.unknown_model
            if "prompt" in body:
                return with_json(self.raw(body["logprobs"])) if self.raw else with_json({"error": "404 page not found"}, 404)
            for name, answer in self.refused.items():
                if name in body:
                    return answer
            if "response_format" in body:
                return with_json(self.chat(VERDICT, None))
            if body.get("logprobs"):
                return with_json(self.chat(" Yes", _likeliest(body["top_logprobs"])))
            return with_json(self.chat("1, 2, 3, 4, 5,", None))

        return behave


def _likeliest(count: int, **more: Any) -> dict[str, Any]:
    top = [{"token": token, "logprob": math.log(p), "bytes": list(token.encode()), **more} for token, p in LIKELIEST.items()]
    return {"content": [{**top[0], "top_logprobs": top[:count]}]}


def _usage(**details: Any) -> Body:
    return {"prompt_tokens": 14, "completion_tokens": 16, "total_tokens": 30, **details}


def _openai_error(message: str, kind: str, param: str | None, code: str | None) -> Body:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _openai_chat(text: str, logprobs: Any) -> Body:
    return {
        "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
        "object": "chat.completion",
        "created": 1741570283,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": None, "annotations": []},
                "logprobs": logprobs and {**logprobs, "refusal": None},
                "finish_reason": "length",
            }
        ],
        "usage": _usage(
            prompt_tokens_details={"cached_tokens": 0, "audio_tokens": 0},
            completion_tokens_details={"reasoning_tokens": 0, "audio_tokens": 0},
        ),
        "service_tier": "default",
        "system_fingerprint": "fp_44added55e",
    }


OPENAI = Server(
    option="openai",
    model="gpt-4o-mini",
    models=[
        {"id": name, "object": "model", "created": 1721172741, "owned_by": "system"}
        for name in ("gpt-4o-mini", "gpt-4o", "gpt-4.1-mini", "o4-mini", "text-embedding-3-small", "whisper-1")
    ],
    chat=_openai_chat,
    key="sk-proj-0123456789",
    wrong_key=with_json(
        _openai_error(
            "Incorrect API key provided: sk-proj-****6789. You can find your API key at "
            "https://platform.openai.com/account/api-keys.",
            "invalid_request_error",
            None,
            "invalid_api_key",
        ),
        401,
    ),
    unknown_model=with_json(
        _openai_error(
            "The model `gpt-4o-mni` does not exist or you do not have access to it.",
            "invalid_request_error",
            None,
            "model_not_found",
        ),
        404,
    ),
    too_long=with_json(
        _openai_error(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130041 tokens. Please "
            "reduce the length of the messages.",
            "invalid_request_error",
            "messages",
            "context_length_exceeded",
        ),
        400,
    ),
    busy=with_json(
        _openai_error(
            "Rate limit reached for gpt-4o-mini in organization org-x on requests per min (RPM): Limit 500, Used 500, "
            "Requested 1. Please try again in 120ms.",
            "requests",
            None,
            "rate_limit_exceeded",
        ),
        429,
        {
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "120ms",
            "retry-after-ms": "120",
            "retry-after": "1",
        },
    ),
)
NO_CREDIT = with_json(
    _openai_error(
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        None,
        "insufficient_quota",
    ),
    429,
)
NO_LOGPROBS = with_json(
    _openai_error("You are not allowed to request logprobs from this model", "invalid_request_error", None, None), 403
)
REASONING = Server(
    option="openai_reasoning",
    model="o4-mini",
    models=OPENAI.models,
    chat=_openai_chat,
    key=OPENAI.key,
    wrong_key=OPENAI.wrong_key,
    unknown_model=OPENAI.unknown_model,
    too_long=OPENAI.too_long,
    busy=OPENAI.busy,
    refused={
        "max_tokens": with_json(
            _openai_error(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                "invalid_request_error",
                "max_tokens",
                "unsupported_parameter",
            ),
            400,
        ),
        "temperature": with_json(
            _openai_error(
                "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
                "invalid_request_error",
                "temperature",
                "unsupported_value",
            ),
            400,
        ),
        "logprobs": NO_LOGPROBS,
    },
)


def _groq_chat(text: str, _: Any) -> Body:
    return {
        "id": "chatcmpl-f51b2cd2-bef7-417e-964e-a08f0b513c22",
        "object": "chat.completion",
        "created": 1730241104,
        "model": "llama-3.3-70b-versatile",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": None, "finish_reason": "length"},
        ],
        "usage": _usage(queue_time=0.037493756, prompt_time=0.000680594, completion_time=0.463333333, total_time=0.464013927),
        "usage_breakdown": None,
        "system_fingerprint": "fp_179b0f92c9",
        "x_groq": {"id": "req_01jbd6g2qdfw2adyrt2az8hz4w"},
        "service_tier": "on_demand",
    }


GROQ = Server(
    option="groq",
    model="llama-3.3-70b-versatile",
    models=[
        {
            "id": name,
            "object": "model",
            "created": 1733447754,
            "owned_by": owner,
            "active": True,
            "context_window": 131072,
            "public_apps": None,
            "max_completion_tokens": 32768,
        }
        for name, owner in (
            ("llama-3.3-70b-versatile", "Meta"),
            ("llama-3.1-8b-instant", "Meta"),
            ("openai/gpt-oss-20b", "OpenAI"),
        )
    ],
    chat=_groq_chat,
    key="gsk_0123456789abcdef",
    wrong_key=with_json(
        {"error": {"message": "Invalid API Key", "type": "invalid_request_error", "code": "invalid_api_key"}},
        401,
    ),
    unknown_model=with_json(
        {
            "error": {
                "message": "The model `llama-3.3-70b` does not exist or you do not have access to it.",
                "type": "invalid_request_error",
                "code": "model_not_found",
            }
        },
        404,
    ),
    too_long=with_json(
        {
            "error": {
                "message": "Please reduce the length of the messages or completion.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
        400,
    ),
    busy=with_json(
        {
            "error": {
                "message": "Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_x` service tier "
                "`on_demand` on tokens per minute (TPM): Limit 12000, Used 11800, Requested 400. Please try again in 1s.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        429,
        {
            "retry-after": "1",
            "x-ratelimit-limit-tokens": "12000",
            "x-ratelimit-remaining-tokens": "200",
            "x-ratelimit-reset-tokens": "1s",
        },
    ),
    refused={
        "logprobs": with_json(
            {
                "error": {
                    "message": "`logprobs` is not supported with this model",
                    "type": "invalid_request_error",
                    "param": "logprobs",
                }
            },
            400,
        )
    },
)
NO_SCHEMA = with_json(
    {
        "error": {
            "message": "This model does not support response format `json_schema`. See supported models at "
            "https://console.groq.com/docs/structured-outputs#supported-models",
            "type": "invalid_request_error",
            "param": "response_format",
        }
    },
    400,
)


def _vllm_error(message: str, kind: str, param: str | None, code: int) -> Body:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _vllm_chat(text: str, logprobs: Any) -> Body:
    return {
        "id": "chatcmpl-2f1f3b0f6ac94d64a9f3d2f5b4f9f3d1",
        "object": "chat.completion",
        "created": 1753000000,
        "model": "selfrag/selfrag_llama2_7b",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": text,
                    "refusal": None,
                    "annotations": None,
                    "audio": None,
                    "function_call": None,
                    "tool_calls": [],
                    "reasoning_content": None,
                },
                "logprobs": logprobs,
                "finish_reason": "length",
                "stop_reason": None,
                "token_ids": None,
            }
        ],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": _usage(prompt_tokens_details=None),
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "kv_transfer_params": None,
    }


def _vllm_raw(count: int) -> Body:
    top = dict(list(LIKELIEST.items())[:count])
    logprobs = {
        "text_offset": [0],
        "token_logprobs": [math.log(top[" Yes"])],
        "tokens": [" Yes"],
        "top_logprobs": [{token: math.log(p) for token, p in top.items()}],
    }
    return {
        "id": "cmpl-0b4d1f5c3c8f4d0f8f7d9b1e2a3c4d5e",
        "object": "text_completion",
        "created": 1753000000,
        "model": "selfrag/selfrag_llama2_7b",
        "choices": [{"index": 0, "text": " Yes", "logprobs": logprobs, "finish_reason": "length", "stop_reason": None}],
        "usage": {"prompt_tokens": 14, "total_tokens": 15, "completion_tokens": 1, "prompt_tokens_details": None},
    }


VLLM = Server(
    option="vllm",
    model="selfrag/selfrag_llama2_7b",
    models=[
        {
            "id": "selfrag/selfrag_llama2_7b",
            "object": "model",
            "created": 1753000000,
            "owned_by": "vllm",
            "root": "selfrag/selfrag_llama2_7b",
            "parent": None,
            "max_model_len": 4096,
            "permission": [{"id": "modelperm-1", "object": "model_permission", "allow_logprobs": True}],
        }
    ],
    chat=_vllm_chat,
    wrong_key=with_json({"error": "Unauthorized"}, 401),
    unknown_model=with_json(_vllm_error("The model `selfrag` does not exist.", "NotFoundError", "model", 404), 404),
    too_long=with_json(
        _vllm_error(
            "This model's maximum context length is 4096 tokens. However, your request has 5120 input tokens. Please reduce the "
            "length of the input messages.",
            "BadRequestError",
            "input_tokens",
            400,
        ),
        400,
    ),
    busy=None,
    raw=_vllm_raw,
)
TOO_MANY_LOGPROBS = with_json(
    _vllm_error("Requested sample logprobs of 20, which is greater than max allowed: 5", "BadRequestError", "logprobs", 400), 400
)


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
        "usage": _usage(),
    }


def _ollama_raw(_: int) -> Body:
    choice = {"text": " Yes", "index": 0, "finish_reason": "length", "logprobs": _likeliest(0)}
    return {
        "id": "cmpl-101",
        "object": "text_completion",
        "created": 1763000000,
        "model": "llama3.2",
        "system_fingerprint": "fp_ollama",
        "choices": [choice],
        "usage": _usage(),
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
        "usage": _usage(),
        "id": "chatcmpl-Zx6yjYAxWQbM1xqk3lNnVYB3Kkqb0Lde",
        "timings": {"prompt_n": 14, "prompt_ms": 31.2, "predicted_n": 16, "predicted_ms": 402.1},
    }


def _llamacpp_raw(count: int) -> Body:
    chat = _llamacpp_chat("", _likeliest(count))
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

SERVERS = {server.option: server for server in (OPENAI, REASONING, GROQ, VLLM, OLLAMA, LLAMACPP)}
