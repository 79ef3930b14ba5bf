"""Text to sentences, by rule: no model, the same everywhere."""

import re

_END = re.compile(r"[.!?]+[\"')\]\u201d\u2019]*(?=\s+(\S))|\n")
_ABBREVIATIONS = frozenset(["capt", "col", "dr", "gen", "lt", "mr", "mrs", "ms", "mt", "prof", "rev", "sen", "st", "vs"])
_INITIALS = re.compile(r"[A-Z]|(\w\.)+\w")


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order.

    One ends at a point, exclamation or question mark before white space and no lower-case letter, or at the end of a line; not at
    the point of initials (J. Smith, the U.S. Senate) or of a title (Dr. Smith).
    """
    found, start = [], 0
    for end in _END.finditer(text):
        if end[1] is not None and (end[1].islower() or _abbreviated(text[start : end.start()], end[0])):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _abbreviated(before: str, mark: str) -> bool:
    word = re.split(r"[\s(]", before)[-1]
    return mark == "." and (word.lower() in _ABBREVIATIONS or _INITIALS.fullmatch(word) is not None)
