"""One turn of the beam: decide whether to retrieve, write from every document, grade, criticise, keep the best paths."""

import asyncio
from dataclasses import replace
from typing import Any

from rag_arena.decisions import GROUNDED, RETRIEVE, Grade, keep_step, verdict_step
from rag_arena.errors import ArenaError
from rag_arena.strategies.nodes.grade import grades
from rag_arena.strategies.self_rag import prompted
from rag_arena.strategies.self_rag.score import RETRIEVE as NEED
from rag_arena.strategies.self_rag.score import SUPPORTED, USEFUL, Path, Weights, best, expectation, path_scores
from rag_arena.strategies.state import State, Toolbox, Tools
from rag_arena.strategies.steps import hits_step, ids, rounded

EVEN = 0.5  # IsRel is Relevant or Irrelevant, whichever is likelier


class BeamState(State, total=False):
    """Beside what every strategy has: the paths kept, best first; those just written; P(Relevant) of each document graded.

    `needed` says that some path waits for documents, `finished` that none can grow.
    """

    beam: list[Path]
    written: list[Path]
    graded: dict[str, float]
    needed: bool
    finished: bool


async def decide(state: BeamState, runtime: Tools) -> BeamState:
    """For every path that can grow, whether its next segment needs documents: by `retrieve`, or by P(Yes) over the threshold."""
    tools, question = runtime.context, state["question"]
    settings = tools.settings
    beam = state.get("beam") or [Path()]
    steps = []
    decided = []
    for path in beam:
        if path.ended:
            decided.append(path)
            continue
        wanted = settings.retrieve == "always"
        step: dict[str, Any] = {"node": "decide", "retrieve": settings.retrieve}
        if settings.retrieve == "adaptive":
            verdict = await prompted.wants(tools, question, path)
            p = expectation(verdict.probabilities, NEED)
            wanted = p is not None and p > settings.threshold
            scores = {"p": rounded(p), "threshold": settings.threshold, "source": verdict.source}
            if path.segments:
                step = {"node": "decide", "answer": path.answer, "retrieve": wanted, **scores}
            else:
                step = verdict_step("decide", RETRIEVE, wanted, **scores)
        steps.append(step)
        decided.append(replace(path, evidence=() if wanted else (None,)))
    return {"beam": decided, "needed": any(not path.ended and not path.evidence for path in decided), "trace": steps}


async def retrieve(state: BeamState, runtime: Tools) -> BeamState:
    """Fetch k documents for every path that waits for some, by the question and the path's last segment."""
    tools = runtime.context
    beam, seen, steps = [], [], []
    for path in state["beam"]:
        if path.ended or path.evidence:
            beam.append(path)
            continue
        query = " ".join([state["question"], *(segment.text for segment in path.segments[-1:])])
        hits = tools.retriever.search(query, tools.settings.k)
        beam.append(replace(path, evidence=tuple(ids(hits)) or (None,)))
        seen += ids(hits)
        steps.append(hits_step("retrieve", hits, query=query))
    return {"beam": beam, "retrieved": seen, "trace": steps}


async def generate(state: BeamState, runtime: Tools) -> BeamState:
    """Continue every path from each of its documents. A path to which nothing new is added has ended.

    Raises:
        ArenaError: every continuation of the question itself is empty.
    """
    tools, question = runtime.context, state["question"]
    written = []
    for path in state["beam"]:
        if path.ended:
            written.append(path)
            continue
        segments = await asyncio.gather(*(prompted.write(tools, question, path, doc_id) for doc_id in path.evidence))
        said = {segment.text for segment in path.segments}
        grown = [path.extended(segment) for segment in segments if segment.text and segment.text not in said]
        if not grown and not path.segments:
            raise ArenaError(f"{tools.model.endpoint.model}: nothing but empty replies at generate; raise max_tokens")
        written += grown or [replace(path, ended=True)]
    return {"written": written, "trace": [{"node": "generate", "continuations": len(written)}]}


async def grade(state: BeamState, runtime: Tools) -> BeamState:
    """IsRel of every document written from that has no grade yet: it depends on the question alone."""
    graded = state.get("graded", {})
    new = [d for d in dict.fromkeys(path.segments[-1].doc_id for path in state["written"]) if d is not None and d not in graded]
    if not new:
        return {"graded": graded}
    found: list[Grade] = await grades(runtime.context, state["question"], new, EVEN)
    return {"graded": {**graded, **{g.doc_id: g.p for g in found}}, "trace": [keep_step("grade", found, floor=EVEN)]}


async def critique(state: BeamState, runtime: Tools) -> BeamState:
    """IsSup and IsUse of every new segment; the best paths stay."""
    settings = runtime.context.settings
    judged = await asyncio.gather(*(_judged(path, state, runtime.context) for path in state["written"]))
    scores = path_scores(judged, Weights(**settings.weights.model_dump()))
    kept = best(judged, scores, settings.beam_width)
    beam = [judged[position] for position in kept]
    steps = [_step(path, score, position in kept) for position, (path, score) in enumerate(zip(judged, scores, strict=True))]
    return {"beam": beam, "finished": all(path.ended or len(path.segments) >= settings.depth for path in beam), "trace": steps}


async def _judged(path: Path, state: BeamState, tools: Toolbox) -> Path:
    segment = path.segments[-1]
    if segment.useful is not None:  # nothing was added
        return path
    verdicts = await prompted.criticise(tools, state["question"], path)
    return path.judged(
        relevant=state["graded"].get(segment.doc_id or ""),
        supported=expectation(verdicts.supported.probabilities, SUPPORTED) if verdicts.supported else None,
        useful=expectation(verdicts.useful.probabilities, USEFUL),
        sources=tuple(verdict.source for verdict in (verdicts.supported, verdicts.useful) if verdict),
    )


def _step(path: Path, score: float, kept: bool) -> dict[str, Any]:
    segment = path.segments[-1]
    terms = {name: rounded(getattr(segment, name)) for name in ("likelihood", "relevant", "supported", "useful")}
    about = {
        "segment": len(path.segments),
        "doc_id": segment.doc_id,
        "text": segment.text,
        "finish_reason": segment.finish_reason,
    }
    return {"node": "critique", **about, **terms, "sources": list(segment.sources), "score": rounded(score), "kept": kept}


async def conclude(state: BeamState) -> BeamState:
    """The best path's text is the answer; it is grounded when its least supported segment is more than partly supported."""
    path = state["beam"][0]
    step: dict[str, Any] = {"node": "conclude", "used": path.documents}
    supported = [(segment.supported, segment.sources) for segment in path.segments if segment.supported is not None]
    if supported:
        p, sources = min(supported)
        step = verdict_step(
            "conclude", GROUNDED, p > SUPPORTED["Partially"], p=rounded(p), source=sources[0], used=path.documents
        )
    return {"used": path.documents, "answer": path.answer, "trace": [step]}
