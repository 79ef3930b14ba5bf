"""Corrective retrieval: evaluate what was found, search elsewhere by keywords, refine everything to its best strips."""

import re
from collections.abc import Sequence
from dataclasses import replace

from rag_arena.decisions import ENOUGH, keep_step, verdict_step
from rag_arena.records import Hit
from rag_arena.strategies.corrective.strips import Strip, best, recomposed, split
from rag_arena.strategies.nodes.grade import grades
from rag_arena.strategies.state import State, Toolbox, Tools
from rag_arena.strategies.steps import document, hits_step, ids, rounded

CORRECT, AMBIGUOUS, INCORRECT = "correct", "ambiguous", "incorrect"
_ENOUGH = {CORRECT: True, AMBIGUOUS: None, INCORRECT: False}
_SHORTEST_TERM = 4  # letters; shorter words are articles and prepositions more often than not


def action_of(scores: Sequence[float], upper: float, lower: float) -> str:
    """Correct if any score is at least `upper`, Incorrect if all are under `lower`, else Ambiguous (the paper's section 4.3).

    Without any document there is nothing that could be right: Incorrect.
    """
    if any(score >= upper for score in scores):
        return CORRECT
    return INCORRECT if all(score < lower for score in scores) else AMBIGUOUS


async def grade(state: State, runtime: Tools) -> State:
    """Score every document and choose the action; Incorrect discards them all."""
    settings = runtime.context.settings
    graded = await grades(runtime.context, state["question"], ids(state["hits"]), settings.lower)
    action = action_of([one.p for one in graded], settings.upper, settings.lower)
    discarded = action == INCORRECT
    kept = keep_step("grade", [replace(one, kept=not discarded) for one in graded])
    verdict = verdict_step("grade", ENOUGH, _ENOUGH[action], action=action, upper=settings.upper, lower=settings.lower)
    return {"hits": [] if discarded else state["hits"], "corrected": action != CORRECT, "trace": [kept, verdict]}


async def rewrite(state: State, runtime: Tools) -> State:
    """Turn the question into keywords; into itself where the reply holds none."""
    tools, question = runtime.context, state["question"]
    limit = tools.settings.rewrite_tokens
    reply = (await tools.small_model.ask("rewrite", tools.prompts.render("keywords", question=question), limit)).text
    query = keywords(reply, question, limit)
    return {"query": query or question, "trace": [{"node": "rewrite", "query": query or question, "readable": bool(query)}]}


def keywords(reply: str, question: str, limit: int) -> str:
    """The words of a reply's first line; empty if they are over `limit` or name nothing of the question."""
    words = re.findall(r"[^\s,;\"]+", reply.strip().partition("\n")[0])
    return " ".join(words) if len(words) <= limit and _terms(" ".join(words)) & _terms(question) else ""


def _terms(text: str) -> set[str]:
    words = re.findall(r"\w+", text.casefold())
    return {word for word in words if len(word) >= _SHORTEST_TERM or any(letter.isdigit() for letter in word)}


async def search(state: State, runtime: Tools) -> State:
    """Fetch by the keywords from the second lane, without documents that were seen."""
    tools = runtime.context
    found = tools.second_lane.search(
        state["query"], tools.settings.widen_factor * tools.settings.k, frozenset(state["retrieved"])
    )
    return {"found": found, "retrieved": ids(found), "trace": [hits_step("search", found, query=state["query"])]}


async def refine(state: State, runtime: Tools) -> State:
    """Cut documents into strips and recompose the best: of those retrieved and of those found elsewhere, `max_strips` each."""
    tools = runtime.context
    sources = [_strips(state, tools, hits) for hits in (state["hits"], state.get("found", []))]
    kept = [strip for source in sources for strip in best(source, tools.settings.strip_filter, tools.settings.max_strips)]
    documents = {refined.doc_id: refined for refined in recomposed(kept)}
    hits = [hit for hit in (*state["hits"], *state.get("found", [])) if hit.doc_id in documents]
    shown = [
        {"doc_id": s.doc_id, "position": s.position, "p": rounded(s.p), "kept": s in kept, "text": s.text}
        for source in sources
        for s in source
    ]
    return {"hits": hits, "documents": documents, "trace": [{"node": "refine", "strips": shown}]}


def _strips(state: State, tools: Toolbox, hits: Sequence[Hit]) -> list[Strip]:
    settings = tools.settings
    cut = [strip for hit in hits for strip in split(document(state, tools, hit.doc_id), settings.strips, settings.strip_length)]
    scores = tools.relevance(state["question"], [strip.full_text for strip in cut])
    return [replace(strip, p=p) for strip, p in zip(cut, scores, strict=True)]
