"""The threshold gate: judge a retrieval by its best cosine, look again when it is low, drop what is far from the question."""

from typing import Any

from rag_arena.decisions import ENOUGH, Grade, keep_step, verdict_step
from rag_arena.records import Hit
from rag_arena.strategies.state import State, Tools
from rag_arena.strategies.steps import hits_step, ids, rounded


async def assess(state: State, runtime: Tools) -> State:
    """Judge the retrieval by its best cosine: not enough under the threshold, and when nothing came back."""
    best = max((hit.cosine for hit in state["hits"]), default=None)
    threshold = runtime.context.settings.threshold
    enough = best is not None and best >= threshold
    step = verdict_step("assess", ENOUGH, enough, best_cosine=rounded(best), threshold=threshold)
    return {"enough": enough, "corrected": not enough, "trace": [step]}


async def correct(state: State, runtime: Tools) -> State:
    """Look again, as `correction` says.

    `widen` looks deeper in the same ranking and keeps its order. `rewrite` (a model rewords the question) and `other_lane` add
    what another query or another lane finds, and order everything by cosine to the question.
    """
    tools, question = runtime.context, state["question"]
    settings = tools.settings
    wide = settings.widen_factor * settings.k
    step: dict[str, Any] = {"correction": settings.correction}
    if settings.correction == "widen":
        hits = tools.retriever.search(question, wide)
    else:
        if settings.correction == "rewrite":
            prompt = tools.prompts.render("rewrite", question=question)
            query = (await tools.small_model.complete("rewrite", prompt, settings.rewrite_tokens)).text
            found = tools.retriever.search(query, wide)
            step["query"] = query
        else:
            found = tools.second_lane.search(question, wide, frozenset(state["retrieved"]))
        merged = {hit.doc_id: hit for hit in (*found, *state["hits"])}
        cosines = tools.cosines(question, list(merged))
        rescored = [Hit(hit.doc_id, hit.score, cosine) for hit, cosine in zip(merged.values(), cosines, strict=True)]
        hits = sorted(rescored, key=lambda hit: (-hit.cosine, hit.doc_id))
    return {"hits": hits, "retrieved": ids(hits), "trace": [hits_step("correct", hits, **step)]}


async def keep(state: State, runtime: Tools) -> State:
    """Drop documents with cosine under keep_ratio x threshold; the first k of the rest remain."""
    settings = runtime.context.settings
    floor = settings.keep_ratio * settings.threshold
    hits = [hit for hit in state["hits"] if hit.cosine >= floor][: settings.k]
    kept = set(ids(hits))
    grades = [Grade(hit.doc_id, hit.cosine, hit.doc_id in kept, "cosine") for hit in state["hits"]]
    return {"hits": hits, "trace": [keep_step("keep", grades, floor=rounded(floor))]}
