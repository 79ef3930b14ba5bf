"""The judge: ragas's AnswerAccuracy and Faithfulness on our transport, with our rules for when a judgement failed.

The only door to ragas. Its metrics swallow errors (one of two failed ratings is silently left out, verdicts are never held
against the claims), so what each model call returned is recorded here and reconciled. A failed judgement is counted, not dropped.
"""

import importlib.util
import logging
import os
import re
import runpy
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # before ragas is imported: it posts telemetry otherwise

import instructor
import openai
from instructor.core import InstructorError
from ragas.llms.base import InstructorLLM
from ragas.metrics.collections import AnswerAccuracy, Faithfulness
from ragas.metrics.collections.faithfulness.util import NLIStatementPrompt, StatementGeneratorPrompt

from rag_arena.errors import EndpointError
from rag_arena.llm.client import request_settings
from rag_arena.llm.refusals import explain
from rag_arena.metering import labelled
from rag_arena.params import Endpoint, Metrics
from rag_arena.records import NOT_ASKED

logging.getLogger("instructor").setLevel(logging.CRITICAL)  # failures are ours to report

RATINGS = (0, 2, 4)
_MODES = {
    "json_schema": instructor.Mode.JSON_SCHEMA,
    "json_object": instructor.Mode.JSON,
    "none": instructor.Mode.MD_JSON,
}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Two ratings (0, 2, 4; the second with answer and reference swapped) and their mean in [0, 1], or why there is none."""

    first: int | None
    second: int | None
    value: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Support:
    """How many claims of an answer its contexts support, or why that is not known.

    `echo`: a claim is one of ragas's own few-shot examples, recited by a judge too small to look past them.
    """

    claims: int | None
    supported: int | None
    value: float | None
    echo: bool | None
    error: str | None


class Judge:
    """Judges answers with one model.

    Every method raises EndpointError when the endpoint refuses every request alike.
    """

    def __init__(self, client: openai.AsyncOpenAI, endpoint: Endpoint, metrics: Metrics) -> None:
        self._client = instructor.from_openai(client, mode=_MODES[endpoint.structured_output])
        self._endpoint = endpoint
        self._metrics = metrics

    async def accuracy(self, question: str, answer: str, reference: str) -> Accuracy:
        """Does the answer agree with the reference? (AnswerAccuracy)"""
        llm = _Recorder(self._client, self._endpoint, (self._metrics.rating_tokens,))
        with labelled("answer_accuracy"):
            await AnswerAccuracy(llm=llm, max_retries=1).ascore(user_input=question, response=answer, reference=reference)
        llm.raise_if_fatal()
        found = accuracy_of([getattr(reply, "rating", None) for reply in llm.replies])
        return replace(found, error=llm.trouble) if found.error and llm.trouble else found

    async def faithfulness(self, question: str, answer: str, contexts: list[str]) -> Support:
        """Do the contexts support the answer's claims? (Faithfulness)"""
        llm = _Recorder(self._client, self._endpoint, (self._metrics.claims_tokens, self._metrics.verdict_tokens))
        with labelled("faithfulness"):
            try:
                await Faithfulness(llm=llm).ascore(user_input=question, response=answer, retrieved_contexts=contexts)
            except (InstructorError, openai.OpenAIError, ValueError):
                llm.raise_if_fatal()
        claims = getattr(llm.replies[0], "statements", None) if llm.replies else None
        verdicts = getattr(llm.replies[1], "statements", None) if len(llm.replies) > 1 else None
        pairs = None if verdicts is None else [(v.statement, v.verdict) for v in verdicts]
        found = support_of(answer, claims, pairs)
        return replace(found, error=llm.trouble) if found.error and llm.trouble else found


def accuracy_of(ratings: list[Any]) -> Accuracy:
    """Two ratings as a score: each / 4, averaged. Both must be there and be 0, 2 or 4."""
    first, second = (r if r in RATINGS else None for r in (*ratings, None, None)[:2])
    if first is None or second is None:
        which = " and ".join(name for name, r in (("first", first), ("second", second)) if r is None)
        return Accuracy(first, second, None, f"no valid {which} rating")
    return Accuracy(first, second, (first / 4 + second / 4) / 2, None)


def support_of(answer: str, claims: list[str] | None, verdicts: list[tuple[str, int]] | None) -> Support:
    """Claims and verdicts reconciled.

    There must be as many verdicts as claims, each about one of the claims, and every claim must share a content word with the
    answer.
    """
    if not claims:
        return Support(None, None, None, None, "no claims" if claims is not None else "claims could not be read")
    words = _content(answer)
    recited = _recitable() - {_plain(answer)}
    echo = any(_plain(claim) in recited for claim in claims)
    strangers = [claim for claim in claims if words.isdisjoint(_content(claim))]
    if strangers:
        return Support(len(claims), None, None, echo, f"{len(strangers)} of {len(claims)} claims share no word with the answer")
    if verdicts is None:
        return Support(len(claims), None, None, echo, "verdicts could not be read")
    if len(verdicts) != len(claims):
        return Support(len(claims), None, None, echo, f"{len(verdicts)} verdicts for {len(claims)} claims")
    known = {_plain(claim) for claim in claims}
    if any(_plain(statement) not in known for statement, _ in verdicts):
        return Support(len(claims), None, None, echo, "a verdict is about no claim")
    if Counter(_plain(statement) for statement, _ in verdicts) != Counter(map(_plain, claims)):
        return Support(len(claims), None, None, echo, "a claim has no verdict of its own")
    if any(verdict not in (0, 1) for _, verdict in verdicts):
        return Support(len(claims), None, None, echo, "a verdict is neither 0 nor 1")
    supported = sum(verdict for _, verdict in verdicts)
    return Support(len(claims), supported, supported / len(claims), echo, None)


@cache
def _recitable() -> frozenset[str]:
    """The statements in ragas's few-shot examples."""
    examples = [*StatementGeneratorPrompt().examples, *NLIStatementPrompt().examples]
    texts = [s if isinstance(s, str) else s.statement for _, output in examples for s in output.statements]
    return frozenset(map(_plain, texts))


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _content(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if word not in _stop_words()}


@cache
def _stop_words() -> frozenset[str]:
    """scikit-learn's, read from its file: importing the package takes a second."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    words = runpy.run_path(str(Path(package.origin).parent / "feature_extraction/_stop_words.py"))
    return frozenset(words["ENGLISH_STOP_WORDS"])


class _Recorder(InstructorLLM):  # type: ignore[misc]
    """ragas's model wrapper, keeping what each call returned; None for a call that failed.

    The i-th call may be as long as the i-th limit, the last limit holding for all further ones.
    """

    def __init__(self, client: Any, endpoint: Endpoint, limits: tuple[int, ...]) -> None:
        settings = request_settings(endpoint, limits[0])
        super().__init__(client=client, model=endpoint.model, provider="openai", max_retries=0, **settings)
        if endpoint.temperature is None:
            self.model_args.pop("temperature", None)
        self.model_args.pop("top_p", None)
        self.model_args.pop("max_tokens", None)
        self._endpoint = endpoint
        self._limits = limits
        self.replies: list[Any] = []
        self.trouble: str | None = None
        self._fatal: EndpointError | None = None

    def _map_provider_params(self) -> dict[str, Any]:
        limit = self._limits[min(len(self.replies), len(self._limits) - 1)]
        return {**self.model_args, self._endpoint.max_tokens_key: limit}

    async def agenerate(self, prompt: str, response_model: type[Any]) -> Any:
        """One structured reply."""
        try:
            reply = await super().agenerate(prompt, response_model)
        except Exception as error:
            self.replies.append(None)
            cause = _openai_error(error)
            if cause is not None:
                explained = explain(cause, self._endpoint, "judge.llm")
                self.trouble = f"{NOT_ASKED}{explained}"
                self._fatal = explained if isinstance(explained, EndpointError) else self._fatal
            raise
        self.replies.append(reply)
        return reply

    def raise_if_fatal(self) -> None:
        """Raise what made the endpoint refuse, if it did."""
        if self._fatal is not None:
            raise self._fatal


def _openai_error(error: BaseException | None) -> openai.OpenAIError | None:
    while error is not None and not isinstance(error, openai.OpenAIError):
        error = error.__cause__ or error.__context__
    return error
