"""The nodes that strategies share: verbs that read the state and write what they found or decided into it."""

from typing import Any

from langgraph.runtime import Runtime

from rag_arena.records import Document, Hit
from rag_arena.strategies.state import State, Toolbox

Tools = Runtime[Toolbox]
LOW, ENOUGH = "low", "enough"


async def retrieve(state: State, runtime: Tools) -> State:
    """Fetch the top k by the question."""
    hits = runtime.context.retriever.search(state["question"], runtime.context.settings.k)
    return {"hits": hits, "retrieved": _ids(hits), "trace": [_step("retrieve", hits, query=state["question"])]}


async def assess(state: State, runtime: Tools) -> State:
    """Judge the retrieval by its best cosine: low under the threshold (and when nothing came back), else enough."""
    best = max((hit.cosine for hit in state["hits"]), default=None)
    threshold = runtime.context.settings.threshold
    verdict = LOW if best is None or best < threshold else ENOUGH
    step = {"node": "assess", "best_cosine": _rounded(best), "threshold": threshold, "verdict": verdict}
    return {"verdict": verdict, "corrected": verdict == LOW, "trace": [step]}


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
            query = (await tools.model.complete("rewrite", prompt, settings.rewrite_tokens)).text
            found = tools.retriever.search(query, wide)
            step["query"] = query
        else:
            found = tools.second_lane.search(question, wide, frozenset(state["retrieved"]))
        merged = {hit.doc_id: hit for hit in (*found, *state["hits"])}
        cosines = tools.cosines(question, list(merged))
        rescored = [Hit(hit.doc_id, hit.score, cosine) for hit, cosine in zip(merged.values(), cosines, strict=True)]
        hits = sorted(rescored, key=lambda hit: (-hit.cosine, hit.doc_id))
    return {"hits": hits, "retrieved": _ids(hits), "trace": [_step("correct", hits, **step)]}


async def keep(state: State, runtime: Tools) -> State:
    """Drop documents with cosine under keep_ratio x threshold; the first k of the rest remain."""
    settings = runtime.context.settings
    floor = settings.keep_ratio * settings.threshold
    hits = [hit for hit in state["hits"] if hit.cosine >= floor][: settings.k]
    return {"hits": hits, "trace": [{"node": "keep", "floor": _rounded(floor), "kept": _ids(hits)}]}


async def generate(state: State, runtime: Tools) -> State:
    """Answer from the documents at hand; without any, from the model's own knowledge."""
    tools = runtime.context
    used = _ids(state.get("hits", []))
    if used:
        passages = "\n\n".join(_passage(tools.document(doc_id)) for doc_id in used)
        prompt = tools.prompts.render("answer", question=state["question"], context=passages)
    else:
        prompt = tools.prompts.render("closed_book", question=state["question"])
    reply = await tools.model.complete("generate", prompt, tools.settings.max_tokens)
    step: dict[str, Any] = {"node": "generate", "used": used, "finish_reason": reply.finish_reason}
    if reply.thoughts:
        step["thoughts"] = reply.thoughts
    return {"used": used, "answer": reply.text, "trace": [step]}


def _passage(document: Document) -> str:
    return f"{document.title}: {document.text}" if document.title else document.text


def _ids(hits: list[Hit]) -> list[str]:
    return [hit.doc_id for hit in hits]


def _step(node: str, hits: list[Hit], **more: Any) -> dict[str, Any]:
    found = [{"doc_id": h.doc_id, "score": _rounded(h.score), "cosine": _rounded(h.cosine)} for h in hits]
    return {"node": node, **more, "hits": found}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
