"""What a server refuses, in one line that says what to change."""

import re

import httpx2
import openai

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.keys import blotted
from rag_arena.llm.transport import OURS, SHORTEN
from rag_arena.params import Endpoint

_REFUSES = re.compile(
    r"support|unknown|unrecogni|unexpected|unavailable|invalid|not (permitted|allowed)|forbidden|must be (one of|')|enabled only"
)
_TOO_LONG = re.compile(r"context (length|size|window)|context_length|reduce the length")
_TOO_MUCH = re.compile(r"too (large|long|many)|context (length|size|window)|at (most|least)")  # of this question alone


def other_shapes(endpoint: Endpoint, section: str) -> str:
    """The mend where a reply does not get its shape as configured."""
    others = [shape for shape in ("json_schema", "json_object", "none") if shape != endpoint.structured_output]
    return f"set {section}.endpoint.structured_output to {' or '.join(others)}"


def other_limit(endpoint: Endpoint, section: str) -> str:
    """The mend where the length of a reply is not called as configured."""
    other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[endpoint.max_tokens_key]
    return f"set {section}.endpoint.max_tokens_key to {other}"


def _refused_field(said: str, endpoint: Endpoint, section: str) -> str | None:
    """What to change when a server says that it does not know a field of ours; None when it complains of something else."""
    text = said.lower()
    if re.search(r"\b(top_)?logprobs\b", text):  # any complaint about them: every request asks for as many
        return f"set {section}.endpoint.top_logprobs to what it allows, 0 for none"
    if not _REFUSES.search(text) or _TOO_MUCH.search(text):
        return None
    reshape, rename = other_shapes(endpoint, section), other_limit(endpoint, section)
    advice = {
        "response.format": reshape,
        "json_schema": reshape,
        endpoint.max_tokens_key: rename,
        "temperature": f"set {section}.endpoint.temperature to null",
        "seed": f"set {section}.endpoint.seed to null",
    }
    return next((what for field, what in advice.items() if re.search(rf"\b{field}\b", text)), None)


def _refused_key(status: int, endpoint: Endpoint, section: str) -> str:
    if endpoint.api_key_env:
        return f"refuses the key ({status}); check {endpoint.api_key_env}"
    return f"wants a key ({status}); set {section}.endpoint.api_key_env to the variable that holds it"


def _said(error: openai.APIStatusError) -> str:
    """The server's own words in one line: `message` of its error where that is a text, else the whole body."""
    inner = error.body.get("message") if isinstance(error.body, dict) else None
    return _line(inner if isinstance(inner, str) and inner.strip() else error.message)


def explain(error: openai.OpenAIError, endpoint: Endpoint, section: str = "llm") -> ArenaError:
    """The openai client's error as one line that says what to do; fatal ones as EndpointError.

    Args:
        error: what the client raised.
        endpoint: who was asked.
        section: where the endpoint stands in params.yaml: llm or judge.llm.
    """
    where = endpoint.base_url or endpoint.model
    if isinstance(error, openai.APIStatusError):
        ours: ArenaError | None = error.response.extensions.get(OURS)
        if ours is not None:
            return ours
        advice = _refused_field(_said(error), endpoint, section) if error.status_code not in (401, 429) else None
        if advice is None and isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return EndpointError(f"{where}: {_refused_key(error.status_code, endpoint, section)}")
        if isinstance(error, openai.NotFoundError):
            return EndpointError(
                f"{where}: 404; check {section}.endpoint.base_url and {section}.endpoint.model ({endpoint.model})"
            )
        said = f"{where}: {error.status_code} {_said(error)}"
        if advice is not None:
            return EndpointError(f"{said}; {advice}")
        if error.code == "insufficient_quota":
            return EndpointError(f"{said}; buy credit there or choose another endpoint")
        return ArenaError(f"{said}; {SHORTEN}" if _TOO_LONG.search(said.lower()) else said)
    if isinstance(error, openai.APITimeoutError):
        return ArenaError(f"{where}: no complete reply in time; raise {section}.transport.deadline_s")
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        if isinstance(cause, httpx2.ConnectError):
            return EndpointError(f"{where}: nobody answers ({cause}); start the server or mend {section}.endpoint.base_url")
        return ArenaError(f"{where}: {_line(cause or error)}")
    return ArenaError(f"{where}: {_line(error)}")


def _line(said: object) -> str:
    return " ".join(blotted(str(said)).split())[:300]
