"""judge: a cell's answers put before the judge; and the judge put before pairs whose truth is known."""

import asyncio
import re
from typing import Any

import pyarrow as pa

from rag_arena import artifacts
from rag_arena.artifacts import questions_of
from rag_arena.concurrency import gather_or_raise
from rag_arena.decisions import claimed
from rag_arena.metering import call_rows, metered
from rag_arena.params import Judge as JudgeParams
from rag_arena.progress import bar
from rag_arena.records import ANSWERED, Question, balanced
from rag_arena.scoring.answers import normalise
from rag_arena.scoring.judge import Accuracy, Judge


async def judge(
    label: str, params: JudgeParams, answers: pa.Table, questions: pa.Table, sample: pa.Table, judge: Judge
) -> tuple[pa.Table, pa.Table]:
    """Judgements of a cell's answers, and the calls behind them.

    At most `metrics.questions` questions are judged, balanced over types; failed ones are not.
    Faithfulness is asked only where documents were used, and of these as they stood in the prompt.
    """
    asked = {q.question_id: q for q in questions_of(questions, sample)}
    chosen = set(balanced(list(asked.values()), params.metrics.questions))
    rows = [row for row in answers.to_pylist() if row["question_id"] in chosen and row["status"] == ANSWERED]
    slots = asyncio.Semaphore(params.llm.transport.max_concurrency)

    async def one(row: dict[str, Any], advance: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        question = asked[row["question_id"]]
        async with slots:
            with metered() as meter:
                answer = claimed(row["answer"])
                accuracy = await judge.accuracy(question.text, answer, question.answer)
                support = await judge.faithfulness(question.text, answer, row["contexts"]) if row["contexts"] else None
        advance()
        judgement = {
            "question_id": question.question_id,
            "question_type": question.question_type,
            **_accuracy_columns(accuracy, "accuracy_error"),
            "claims": support and support.claims,
            "supported": support and support.supported,
            "faithfulness": support and support.value,
            "faithfulness_error": support and support.error,
            "echo": support and support.echo,
            "judge_calls": len(meter.calls),
            "tokens_in": sum(call.tokens_in for call in meter.calls),
            "tokens_out": sum(call.tokens_out for call in meter.calls),
        }
        return judgement, call_rows(question.question_id, meter)

    with bar(f"judge {label}", len(rows)) as advance:
        return _tables(artifacts.JUDGEMENTS, await gather_or_raise([one(row, advance) for row in rows]))


async def judge_known_truth(
    params: JudgeParams, questions: pa.Table, sample: pa.Table, judge: Judge
) -> tuple[pa.Table, pa.Table]:
    """Ratings of candidates whose truth is known, and the calls behind them.

    Right are a question's own reference and an alias, wrong the reference of another question of the same type and a corrupted
    reference. `sample` is the calibration split.
    """
    pool = questions_of(questions, sample)
    chosen = set(balanced(pool, params.known_truth.questions))
    pairs = [
        (question, kind, candidate, kind in ("same", "alias"))
        for question in pool
        if question.question_id in chosen
        for kind, candidate in known_pairs(question, pool)
    ]
    slots = asyncio.Semaphore(params.llm.transport.max_concurrency)

    async def one(
        question: Question, kind: str, candidate: str, is_correct: bool, advance: Any
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        async with slots:
            with metered() as meter:
                accuracy = await judge.accuracy(question.text, candidate, question.answer)
        advance()
        row = {"question_id": question.question_id, "kind": kind, "candidate": candidate, "is_correct": is_correct}
        return {**row, **_accuracy_columns(accuracy, "error")}, call_rows(f"{question.question_id} {kind}", meter)

    with bar("judge known truth", len(pairs)) as advance:
        return _tables(artifacts.KNOWN_TRUTH, await gather_or_raise([one(*pair, advance) for pair in pairs]))


def _tables(
    artifact: artifacts.Artifact, results: list[tuple[dict[str, Any], list[dict[str, Any]]]]
) -> tuple[pa.Table, pa.Table]:
    rows, calls = [row for row, _ in results], [call for _, made in results for call in made]
    return artifacts.table(artifact, rows), artifacts.table(artifacts.CALLS, calls)


def known_pairs(question: Question, pool: list[Question]) -> list[tuple[str, str]]:
    """Candidates for one question, as (kind, text); kinds that the question cannot offer are left out."""
    accepted = {normalise(reference) for reference in question.references}
    others = [q.answer for q in pool if q.question_type == question.question_type and normalise(q.answer) not in accepted]
    pairs = [("same", question.answer)]
    if question.aliases:
        pairs.append(("alias", question.aliases[0]))
    if others:
        pairs.append(("other", others[0]))
    corrupted = corrupt(question.answer)
    if normalise(corrupted) not in accepted:
        pairs.append(("corrupted", corrupted))
    return pairs


def corrupt(reference: str) -> str:
    """The reference made wrong: every number raised by 7, a short text without numbers negated; a long one stays as it is."""
    if re.search(r"\d", reference):
        return re.sub(r"\d+", lambda match: str(int(match.group()) + 7), reference)
    return f"not {reference}" if len(reference.split()) < 12 else reference


def _accuracy_columns(accuracy: Accuracy, error: str) -> dict[str, Any]:
    return {
        "accuracy_first": accuracy.first,
        "accuracy_second": accuracy.second,
        "answer_accuracy": accuracy.value,
        error: accuracy.error,
    }
