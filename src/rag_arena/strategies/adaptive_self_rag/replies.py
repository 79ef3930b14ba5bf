"""Lists in a small model's replies, read one line per item: what cannot be used is left out, and a list may be empty."""

import re

_MARK = re.compile(r"^\s*(?:[-*\u2022]+|\d{1,2}[.)])\s+")
_LABEL = re.compile(r"^(?:(?:[\w'-]+ ){0,8}[\w'-]+:(?:\s+|$))+")  # "Search query: ", "The answer to this question is: "
_LONGEST = 300


def queries_of(reply: str, most: int) -> list[str]:
    """Distinct queries, at most `most`, each with a letter or digit in it, without the labels that models put before them."""
    lines = [_LABEL.sub("", line).strip(" \t\"'`") for line in _items(reply)]
    return list(dict.fromkeys(line for line in lines if re.search(r"\w", line)))[:most]


def claims_of(reply: str, answer: str, most: int) -> list[str]:
    """Claims of an answer, at most `most`: lines that share a word of four letters or more, or a number, with the answer."""
    said = _content(answer)
    return [line for line in _items(reply) if _content(line) & said][:most]


def _items(reply: str) -> list[str]:
    return [_MARK.sub("", line).strip()[:_LONGEST] for line in reply.splitlines()]


def _content(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}|\d+", text.casefold()))
