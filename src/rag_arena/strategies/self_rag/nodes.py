"""One turn of the beam: decide whether to retrieve, write from every document, grade, criticise, keep the best paths."""

import asyncio
from dataclasses import replace
from typing import Any

from rag_arena.decisions import GROUNDED, RETRIEVE, keep_step, verdict_step
from rag_arena.errors import ArenaError
from rag_arena.strategies.self_rag.native import Native
from rag_arena.strategies.self_rag.path import Path
from rag_arena.strategies.self_rag.prompted import Prompted
from rag_arena.strategies.self_rag.reflection import EVEN, Reflection
from rag_arena.strategies.self_rag.score import SUPPORTED, Weights, best, path_scores
from rag_arena.strategies.state import State, Tools
from rag_arena.strategies.steps import hits_step, ids, rounded

VARIANTS: dict[str, Reflection] = {"prompted": Prompted(), "native": Native()}


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
    settings = runtime.context.settings
    beam, steps = [], []
    for path in state.get("beam") or [Path()]:
        if path.ended:
            beam.append(path)
            continue
        wanted, read_on = settings.retrieve == "always", False
        step: dict[str, Any] = {"node": "decide", "retrieve": settings.retrieve}
        if settings.retrieve == "adaptive":
            need = await VARIANTS[settings.variant].need(runtime.context, state["question"], path)
            read_on = need.reads_on
            wanted = need.p > settings.threshold and not read_on
            how = {"p": rounded(need.p), "threshold": settings.threshold, "source": need.source, "outside": rounded(need.outside)}
            step = verdict_step("decide", RETRIEVE, wanted, answer=path.answer, read_on=read_on, **how)
        steps.append(step)
        at_hand = path.segments[-1].doc_id if read_on else None
        beam.append(replace(path, evidence=() if wanted else (at_hand,)))
    return {"beam": beam, "needed": any(not path.ended and not path.evidence for path in beam), "trace": steps}


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
    reflection = VARIANTS[tools.settings.variant]
    written = []
    for path in state["beam"]:
        if path.ended:
            written.append(path)
            continue
        segments = await asyncio.gather(*(reflection.write(tools, question, path, doc_id) for doc_id in path.evidence))
        said = {segment.text for segment in path.segments}
        grown = [path.extended(segment) for segment in segments if segment.text and segment.text not in said]
        if not grown and not path.segments:
            raise ArenaError(f"{tools.model.endpoint.model}: nothing but empty replies at generate; raise max_tokens")
        written += grown or [replace(path, ended=True)]
    return {"written": written, "trace": [{"node": "generate", "continuations": len(written)}]}


async def grade(state: BeamState, runtime: Tools) -> BeamState:
    """IsRel of every document written from that has no grade yet."""
    tools, graded = runtime.context, state.get("graded", {})
    latest = {path.segments[-1].doc_id: path.segments[-1] for path in reversed(state["written"])}
    new = [segment for doc_id, segment in reversed(latest.items()) if doc_id is not None and doc_id not in graded]
    if not new:
        return {"graded": graded}
    found = await VARIANTS[tools.settings.variant].grades(tools, state["question"], new)
    return {"graded": {**graded, **{g.doc_id: g.p for g in found}}, "trace": [keep_step("grade", found, floor=EVEN)]}


async def critique(state: BeamState, runtime: Tools) -> BeamState:
    """IsSup and IsUse of every new segment; the best paths stay."""
    settings, graded = runtime.context.settings, state["graded"]
    criticise = VARIANTS[settings.variant].criticise
    given = [(path, graded.get(path.segments[-1].doc_id or "")) for path in state["written"]]
    judged = await asyncio.gather(*(criticise(runtime.context, state["question"], *each) for each in given))
    scores = path_scores(judged, Weights(**settings.weights.model_dump()))
    kept = best(judged, scores, settings.beam_width)
    beam = [judged[position] for position in kept]
    steps = [_step(path, score, position in kept) for position, (path, score) in enumerate(zip(judged, scores, strict=True))]
    return {"beam": beam, "finished": all(path.ended or len(path.segments) >= settings.depth for path in beam), "trace": steps}


def _step(path: Path, score: float, kept: bool) -> dict[str, Any]:
    segment = path.segments[-1]
    terms = {name: rounded(getattr(segment, name)) for name in ("likelihood", "relevant", "supported", "useful")}
    about = {
        "segment": len(path.segments),
        "doc_id": segment.doc_id,
        "text": segment.text,
        "finish_reason": segment.finish_reason,
    }
    how = {"sources": list(segment.sources), "outside": [rounded(mass) for mass in segment.outside]}
    return {"node": "critique", **about, **terms, **how, "score": rounded(score), "kept": kept}


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
