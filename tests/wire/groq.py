"""Groq, after console.groq.com/docs/api-reference and its error bodies."""

from typing import Any

from tests.stub import Body, with_json
from tests.wire.server import Server, usage


def _groq_chat(text: str, _: Any) -> Body:
    return {
        "id": "chatcmpl-f51b2cd2-bef7-417e-964e-a08f0b513c22",
        "object": "chat.completion",
        "created": 1730241104,
        "model": "llama-3.3-70b-versatile",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": None, "finish_reason": "length"},
        ],
        "usage": usage(queue_time=0.037493756, prompt_time=0.000680594, completion_time=0.463333333, total_time=0.464013927),
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
