"""Scores of an answer against its references, without any model.

Normalisation, exact match and token F1 follow MuSiQue's official script (Trivedi et al. 2022): lower case, punctuation and the
articles a, an, the removed, spaces collapsed; the best over the answer and its aliases counts. Two traps of that script are
closed here: a point or comma between digits stays ("3.14" is not "314"), and a reference that normalises to nothing
("!!!") is compared as it is written, so that an empty prediction never scores.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

CORRECT_AT = 0.75  # AnswerAccuracy from which the judge accepts an answer
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_COMMA = re.compile(r"(?<=\d),(?=\d)")
_POINT = re.compile(r"(?:(?<=\d)|(?<!\w))\.(?=\d)")
_UNMATCHED = "\x02"  # stands for an empty reference, which nothing matches
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KEPT_POINT, _KEPT_COMMA = "\x00", "\x01"


def normalise(text: str) -> str:
    """A text as the scorers compare it."""
    lowered = _POINT.sub(_KEPT_POINT, _COMMA.sub(_KEPT_COMMA, _THOUSANDS.sub("", text.lower())))
    bare = lowered.translate(_PUNCTUATION).replace(_KEPT_POINT, ".").replace(_KEPT_COMMA, ",")
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(prediction: str, references: Iterable[str]) -> float:
    """1 if the prediction equals a reference after normalisation, else 0."""
    return max(float(_comparable(prediction, r)[0] == _comparable(prediction, r)[1]) for r in references)


def token_f1(prediction: str, references: Iterable[str]) -> float:
    """Harmonic mean of token precision and recall, the best over the references; in [0, 1]."""
    return max(_f1(*_comparable(prediction, r)) for r in references)


def contains(prediction: str, references: Iterable[str]) -> float:
    """1 if a reference occurs in the prediction as whole words after normalisation, else 0."""
    return max(float(f" {reference} " in f" {found} ") for found, reference in (_comparable(prediction, r) for r in references))


def matches(prediction: str, references: Iterable[str]) -> bool:
    """Whether a short answer counts as correct: it equals or contains a reference."""
    references = list(references)
    return bool(exact_match(prediction, references) or contains(prediction, references))


def rouge_l(prediction: str, reference: str) -> float:
    """F-measure of the longest common subsequence of stemmed words (Lin 2004); in [0, 1]."""
    return float(_scorer().score(reference, prediction)["rougeL"].fmeasure)


def _comparable(prediction: str, reference: str) -> tuple[str, str]:
    normalised = normalise(reference)
    return (normalise(prediction), normalised) if normalised else (prediction.strip(), reference.strip() or _UNMATCHED)


def _f1(prediction: str, reference: str) -> float:
    found, wanted = prediction.split(), reference.split()
    common = sum((Counter(found) & Counter(wanted)).values())
    return 2 * common / (len(found) + len(wanted)) if common else 0.0


@lru_cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=True)
