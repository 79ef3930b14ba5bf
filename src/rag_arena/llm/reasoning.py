"""What a reasoning model thinks aloud is kept apart from what it answers."""

import re

_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)


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
