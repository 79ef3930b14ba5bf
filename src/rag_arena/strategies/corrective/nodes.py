"""Corrective retrieval: evaluate what was found, search elsewhere by keywords, refine everything to its best strips."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rag_arena.decisions import ENOUGH, keep_step, verdict_step
from rag_arena.embedders import cosines
from rag_arena.records import Document, Hit
from rag_arena.strategies.corrective.strips import Strip, best, recomposed, split
from rag_arena.strategies.nodes.grade import grades
from rag_arena.strategies.state import State, Toolbox, Tools
from rag_arena.strategies.steps import document, hits_step, ids, rounded

CORRECT, AMBIGUOUS, INCORRECT = "correct", "ambiguous", "incorrect"
_ENOUGH = {CORRECT: True, AMBIGUOUS: None, INCORRECT: False}
_QUESTION_WORDS = frozenset(["what", "when", "where", "which", "whom", "whose"])
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
    """The words of a reply; empty if they are over `limit` or name nothing of the question."""
    words = [word for word in re.split(r"[\s,;:*\"]+", reply) if re.search(r"\w", word)]
    return " ".join(words) if len(words) <= limit and _terms(" ".join(words)) & _terms(question) else ""


def _terms(text: str) -> set[str]:
    words = re.findall(r"\w+", text.casefold())
    return {w for w in words if len(w) >= _SHORTEST_TERM or any(letter.isdigit() for letter in w)} - _QUESTION_WORDS


async def search(state: State, runtime: Tools) -> State:
    """Fetch by the keywords from elsewhere: the second lane without documents that were seen, or the web."""
    tools, query = runtime.context, state["query"]
    settings = tools.settings
    wide = settings.widen_factor * settings.k
    if settings.elsewhere == "second_lane":
        found, pages = tools.second_lane.search(query, wide, frozenset(state["retrieved"])), []
    else:
        assert tools.web is not None
        pages = await tools.web.search("search", settings.elsewhere, settings.web, query, wide)
        found = _ranked(pages, query, tools)
    titles = {page.doc_id: page.title for page in pages}
    step = hits_step("search", found, query=query, elsewhere=settings.elsewhere, **({"titles": titles} if titles else {}))
    return {"found": found, "documents": {page.doc_id: page for page in pages}, "retrieved": ids(found), "trace": [step]}


def _ranked(pages: Sequence[Document], query: str, tools: Toolbox) -> list[Hit]:
    """Pages as hits: engines' own scores cannot be compared, so a score is the reciprocal rank."""
    similar = cosines(np.stack([tools.embed(page.full_text) for page in pages]), tools.embed(query)) if pages else []
    return [Hit(page.doc_id, 1 / rank, cosine) for rank, (page, cosine) in enumerate(zip(pages, similar, strict=True), 1)]


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
