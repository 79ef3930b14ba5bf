"""vLLM, after vllm/entrypoints/openai."""

import math
from typing import Any

from tests.stub import Body, with_json
from tests.wire.server import LIKELIEST, Server, usage


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
        "usage": usage(prompt_tokens_details=None),
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
