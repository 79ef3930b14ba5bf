"""run: one cell, a strategy under a retrieval mode, over the evaluation split."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from rag_arena import artifacts, strategies
from rag_arena.artifacts import questions_of
from rag_arena.concurrency import gather_or_raise
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.client import SMALL, ChatModel
from rag_arena.metering import Meter, call_rows, metered
from rag_arena.params import NO_MODE, Params
from rag_arena.progress import bar
from rag_arena.records import ANSWERED, FAILED, Cell, Hit, Metadata, Question
from rag_arena.retrieval.retriever import RecordedRetriever, open_retrievers
from rag_arena.retrieval.web import WebSearch
from rag_arena.strategies.prompts import Prompts
from rag_arena.strategies.state import State, Toolbox
from rag_arena.strategies.steps import document


@dataclass(frozen=True, slots=True)
class Inputs:
    """Artifacts that a cell reads. One without retrieval has neither corpus, index nor hits; its settings are params.yaml's."""

    questions: pa.Table
    sample: pa.Table
    corpus: pa.Table | None = None
    index: pa.Table | None = None
    hits: pa.Table | None = None
    resolved: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """Artifacts that a cell writes: answers are deterministic, calls and timings vary from run to run."""

    answers: pa.Table
    calls: pa.Table
    timings: pa.Table


async def run(
    cell: Cell, params: Params, inputs: Inputs, model: ChatModel, small_model: ChatModel, web: WebSearch | None = None
) -> Outputs:
    """Answer every question of the evaluation split, many at once.

    A failing question is recorded with its error.

    Raises:
        EndpointError: the model refuses every request alike.
        ArenaError: more than run.max_failed_share of the questions failed.
    """
    chosen = questions_of(inputs.questions, inputs.sample)
    graph = strategies.build(cell.strategy)
    settings = _settings(cell, params, inputs)
    tools = _toolboxes(cell, settings, params, inputs, model, small_model, web)
    k = 0 if cell.retrieval == NO_MODE else settings.k
    first_pass = {q.question_id: tools(q.where).retriever.search(q.text, k) if k else [] for q in chosen}
    slots = asyncio.Semaphore(1 if settings.one_by_one else params.llm.transport.max_concurrency)

    async def answer(question: Question, advance: Any) -> tuple[dict[str, Any], Meter]:
        async with slots:
            with metered() as meter:
                state, error = await _invoke(graph, question, tools(question.where))
        advance()
        return _row(question, state, error, meter, first_pass[question.question_id], tools(question.where)), meter

    with bar(f"run {cell}", len(chosen)) as advance:
        results = await gather_or_raise([answer(question, advance) for question in chosen])
    _refuse_too_many_failures(cell, [row for row, _ in results], params.run.max_failed_share)
    calls, timings = [], []
    for row, meter in results:
        calls += call_rows(row["question_id"], meter)
        timings.append(
            {
                "question_id": row["question_id"],
                "llm_s": sum(call.latency_s for call in meter.calls),
                "search_s": meter.search_s,
                "grading_s": meter.grading_s,
                "recorded_searches": meter.recorded_searches,
                "replayed_calls": sum(call.replayed for call in meter.calls),
            }
        )
    return Outputs(
        artifacts.table(artifacts.ANSWERS, [row for row, _ in results]),
        artifacts.table(artifacts.CALLS, calls),
        artifacts.table(artifacts.TIMINGS, timings),
    )


async def ask(
    cell: Cell,
    params: Params,
    inputs: Inputs,
    model: ChatModel,
    small_model: ChatModel,
    question: str,
    web: WebSearch | None = None,
    where: Metadata = (),
) -> tuple[State, Meter]:
    """Answer one question of the user's, outside any sample, from documents that have all values of `where`.

    Raises:
        ArenaError: the strategy or mode is unknown or they do not go together, or a call failed.
    """
    graph: Any = strategies.build(cell.strategy)
    if (cell.strategy in params.floor) != (cell.retrieval == NO_MODE):
        mend = f"choose {NO_MODE} as its retrieval" if cell.strategy in params.floor else "choose a retrieval mode"
        raise ArenaError(f"{cell}: {cell.strategy} {'never retrieves' if cell.strategy in params.floor else 'retrieves'}; {mend}")
    tools = _toolboxes(cell, _settings(cell, params, inputs), params, inputs, model, small_model, web)
    with metered() as meter:
        state: State = await graph.ainvoke({"question": question}, context=tools(where))
    return state, meter


async def _invoke(graph: Any, question: Question, toolbox: Toolbox) -> tuple[State, str | None]:
    try:
        state: State = await graph.ainvoke({"question": question.text}, context=toolbox)
    except EndpointError:
        raise
    except ArenaError as error:
        return {}, str(error)
    return state, None if state.get("answer", "").strip() else "the answer is empty"


def _row(
    question: Question, state: State, error: str | None, meter: Meter, first_pass: list[Hit], toolbox: Toolbox
) -> dict[str, Any]:
    used = state.get("used", [])
    corrected = state.get("corrected")
    small = [call for call in meter.calls if call.tier == SMALL]
    return {
        "question_id": question.question_id,
        "question_type": question.question_type,
        "status": FAILED if error else ANSWERED,
        "error": error,
        "answer": state.get("answer"),
        "retrieved_ids": state.get("retrieved", []),
        "used_ids": used,
        "contexts": [document(state, toolbox, doc_id).full_text for doc_id in used],
        "corrected": corrected,
        "changed": None if corrected is None else used != [hit.doc_id for hit in first_pass],
        "llm_calls": len(meter.calls),
        "tokens_in": sum(call.tokens_in for call in meter.calls),
        "tokens_out": sum(call.tokens_out for call in meter.calls),
        "small_tokens_in": sum(call.tokens_in for call in small),
        "small_tokens_out": sum(call.tokens_out for call in small),
        "trace": json.dumps(state.get("trace", []), ensure_ascii=False),
    }


def _refuse_too_many_failures(cell: Cell, rows: list[dict[str, Any]], limit: float) -> None:
    failed = [row for row in rows if row["status"] == FAILED]
    if len(failed) > limit * len(rows):
        first = failed[0]
        raise ArenaError(
            f"{cell}: {len(failed)} of {len(rows)} questions failed, over run.max_failed_share {limit:g}; "
            f"the first, {first['question_id']}: {first['error']}"
        )


def _settings(cell: Cell, params: Params, inputs: Inputs) -> Any:
    resolved = inputs.resolved
    return strategies.in_force(cell.strategy, resolved) if resolved is not None else strategies.settings(cell.strategy, params)


def _toolboxes(
    cell: Cell,
    settings: Any,
    params: Params,
    inputs: Inputs,
    model: ChatModel,
    small_model: ChatModel,
    web: WebSearch | None,
) -> Callable[[Metadata], Toolbox]:
    """The tools of questions that are held to the same documents: these share what a strategy remembers, others do not."""
    prompts = Prompts(cell.strategy)
    if cell.retrieval == NO_MODE:
        none, nothing = _no_evidence, RecordedRetriever({}, 0, _no_evidence)
        floor = Toolbox(settings, model, small_model, prompts, nothing, nothing, none, none, none, none)
        return lambda _: floor
    assert inputs.corpus is not None
    assert inputs.index is not None
    assert inputs.hits is not None
    assert inputs.resolved is not None
    corpus, index = inputs.corpus, inputs.index
    opened = open_retrievers(params, corpus, index)
    depth = params.retrieval.mode(cell.retrieval).candidates
    hits = artifacts.hits_of(inputs.hits)
    recorded: dict[Metadata, dict[str, list[Hit]]] = {}
    for row in inputs.questions.to_pylist():
        recorded.setdefault(tuple(row["where"]), {})[row["question"]] = hits.get(row["question_id"], [])
    documents = artifacts.documents(corpus)

    @cache
    def toolbox(where: Metadata) -> Toolbox:
        return Toolbox(
            settings,
            model,
            small_model,
            prompts,
            RecordedRetriever(recorded.get(where, {}), depth, lambda: opened.of(cell.retrieval), where),
            RecordedRetriever({}, 0, lambda: opened.second_lane(cell.retrieval), where),
            opened.cosines,
            lambda query, texts: opened.relevance(query, texts, settings.relevance),
            opened.embed,
            documents.__getitem__,
            web=web,
        )

    return toolbox


def _no_evidence(*_: Any) -> Any:
    raise AssertionError("a strategy of the floor asked for documents")
