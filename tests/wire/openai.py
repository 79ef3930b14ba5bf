"""OpenAI, after platform.openai.com/docs/api-reference and its error bodies."""

from typing import Any

from tests.stub import Body, with_json
from tests.wire.server import Server, usage


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
        "usage": usage(
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
