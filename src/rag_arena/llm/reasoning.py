"""What a reasoning model thinks aloud is kept apart from what it answers."""

import json
import re
from typing import Any

import httpx2

_NAMES = ("think", "thinking", "reasoning")
_TAG = re.compile(rf"<(/?)(?:{'|'.join(_NAMES)})>", re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str]:
    """Part a reply into (thoughts, answer).

    Thoughts stand in think tags: paired, nested, or headless (a closing tag alone, because the chat template already
    opened it: everything before it is thought). A tag that is never closed leaves no answer.
    """
    depth, position = 0, 0
    thoughts: list[str] = []
    answer: list[str] = []
    for tag in _TAG.finditer(text):
        piece = text[position : tag.start()]
        if tag.group(1) and depth == 0:
            thoughts += [*answer, piece]
            answer = []
        else:
            (thoughts if depth else answer).append(piece)
            depth += -1 if tag.group(1) else 1
        position = tag.end()
    (thoughts if depth else answer).append(text[position:])
    return "".join(thoughts).strip(), "".join(answer).strip()


def opens_thought(text: str) -> bool:
    """Whether a text is the beginning of a think tag, as the first token of a thought may be."""
    return any(f"<{name}>".startswith(text.casefold()) for name in _NAMES)


class ReasoningTransport(httpx2.AsyncBaseTransport):
    """Moves what a model thought aloud from a reply's `content` to its `reasoning_content`, where some servers put it themselves.

    So no reader of replies, ours or ragas's, takes a thought for an answer; the ledger below keeps each reply as it came.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The inner transport's answer, a completion's thoughts set apart."""
        response = await self._inner.handle_async_request(request)
        if response.status_code != 200:
            return response
        reply = json.loads(await response.aread())
        for message in (choice["message"] for choice in reply["choices"] if "message" in choice):  # a raw completion has none
            _set_apart(message)
        return httpx2.Response(200, json=reply)

    async def aclose(self) -> None:
        """Close the inner transport."""
        await self._inner.aclose()


def _set_apart(message: dict[str, Any]) -> None:
    thoughts, message["content"] = split_reasoning(_text(message.get("content")))
    given = (message.get(key) for key in ("reasoning_content", "reasoning"))
    message["reasoning_content"] = thoughts or next((text for text in given if isinstance(text, str)), "")


def _text(content: Any) -> str:
    """A message's text; content may also be a list of parts, of which `thinking` ones become a think block."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "".join(f"<think>{_text(p['thinking'])}</think>" if "thinking" in p else _text(p.get("text")) for p in parts)
    return content if isinstance(content, str) else ""
