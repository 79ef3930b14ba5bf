"""The loop's nodes: each writes what it found or decided, and edges read it."""

from typing import Any

from rag_arena.decisions import GROUNDED, RETRIEVE, UNCONFIRMED, Grade, keep_step, verdict_step
from rag_arena.embedders import cosines
from rag_arena.llm.verdicts import Verdict, classify
from rag_arena.records import Hit
from rag_arena.strategies.adaptive_self_rag.context import best_within
from rag_arena.strategies.adaptive_self_rag.replies import claims_of, queries_of
from rag_arena.strategies.adaptive_self_rag.state import Loop
from rag_arena.strategies.adaptive_self_rag.terms import exact_terms, lost
from rag_arena.strategies.nodes.grade import YES_NO, grades
from rag_arena.strategies.state import Earlier, Tools
from rag_arena.strategies.steps import context, hits_step, ids, rounded

_CHARACTERS_PER_TOKEN = 4


async def recall(state: Loop, runtime: Tools) -> Loop:
    """Reuse the validated answer of an earlier question that is closer than `reuse_threshold`, if there is one."""
    tools, threshold = runtime.context, runtime.context.settings.reuse_threshold
    if threshold is None or not tools.earlier:
        return {"reused": False}
    vector = tools.embed(state["question"])
    scored = [(cosines(earlier.vector[None], vector)[0], earlier) for earlier in tools.earlier]
    cosine, nearest = max(scored, key=lambda pair: pair[0])
    step = {"node": "recall", "reused": cosine > threshold, "earlier": nearest.question, "cosine": rounded(cosine)}
    if cosine <= threshold:
        return {"reused": False, "trace": [step]}
    return {
        "reused": True,
        "confirmed": True,
        "corrected": False,
        "answer": nearest.answer,
        "used": nearest.used,
        "retrieved": nearest.used,
        "trace": [step],
    }


async def route(state: Loop, runtime: Tools) -> Loop:
    """Retrieve when the small model is sure enough that this is no common knowledge, and when it cannot say.

    The confidence that retrieval is needed is 1 - P(Yes) to the question whether everyone knows the answer by heart.
    """
    tools = runtime.context
    verdict = await classify(tools.small_model, "route", tools.prompts.render("route", question=state["question"]), YES_NO)
    confidence = verdict.probabilities["No"]
    needed = verdict.source == "unreadable" or confidence >= tools.settings.route_threshold
    step = verdict_step("route", RETRIEVE, needed, p=rounded(confidence), source=verdict.source)
    return {"choice": "several" if needed else "none", "corrected": False, "retries": 0, "trace": [step]}


async def retrieve(state: Loop, runtime: Tools) -> Loop:
    """Fetch the top k by each query, the question at first; the store leaves out every document seen before."""
    tools = runtime.context
    queries = state.get("queries", [state["question"]])
    seen = frozenset(state.get("retrieved", []))
    found: list[Hit] = []
    for query in queries:
        found += tools.retriever.search(query, tools.settings.k, seen.union(ids(found)))
    step = hits_step("retrieve", found, queries=queries, excluded=len(seen))
    return {"found": found, "retrieved": ids(found), "trace": [step]}


async def grade(state: Loop, runtime: Tools) -> Loop:
    """Keep what is relevant to the question, and choose the context anew from all that was ever kept.

    Enough is a context that has not been answered from before. The first one sets the budget of those that follow.
    """
    tools, settings = runtime.context, runtime.context.settings
    found = state["found"]
    graded: list[Grade] = await grades(tools, state["question"], ids(found), settings.keep_threshold)
    kept = [Hit(hit.doc_id, g.p, hit.cosine) for hit, g in zip(found, graded, strict=True) if g.kept]
    pool = [*state.get("pool", []), *kept]
    budget = state.get("budget", settings.context_tokens * _CHARACTERS_PER_TOKEN)
    hits, cut = best_within(pool, settings.k, budget, tools.document)
    enough = ids(hits) != ids(state.get("hits", []))
    update: Loop = {"pool": pool, "hits": hits, "documents": cut, "enough": enough}
    if hits:
        update["budget"] = state.get("budget", len(context({"documents": cut}, tools, ids(hits))))
    if not enough:
        update["failure"] = "no_context"
    update["trace"] = [keep_step("grade", graded, floor=settings.keep_threshold, context=ids(hits))]
    return update


async def verify(state: Loop, runtime: Tools) -> Loop:
    """Is the answer supported by the documents it was given? If not, which of its claims are not?"""
    tools, settings = runtime.context, runtime.context.settings
    values = {"question": state["question"], "answer": state["answer"], "context": context(state, tools, state["used"])}
    verdict = await classify(tools.small_model, "verify", tools.prompts.render("grounded", **values), YES_NO)
    grounded = _holds(verdict, settings.grounded_threshold)
    step = verdict_step("verify", GROUNDED, grounded, **_certainty(verdict))
    if grounded:
        return {"grounded": True, "trace": [step]}
    reply = await tools.small_model.ask("verify", tools.prompts.render("unsupported", **values), settings.claims_tokens)
    claims = claims_of(reply.text, state["answer"], settings.claims)
    return {"grounded": False, "failure": "unsupported", "unsupported": claims, "trace": [{**step, "unsupported": claims}]}


async def assess(state: Loop, runtime: Tools) -> Loop:
    """Does the grounded answer answer the question? One that does is confirmed, and may be reused if that is configured."""
    tools, settings = runtime.context, runtime.context.settings
    prompt = tools.prompts.render("useful", question=state["question"], answer=state["answer"])
    verdict = await classify(tools.small_model, "assess", prompt, YES_NO)
    useful = _holds(verdict, settings.useful_threshold)
    step = {"node": "assess", "useful": useful, **_certainty(verdict)}
    if not useful:
        return {"useful": False, "failure": "not_useful", "trace": [step]}
    if settings.reuse_threshold is not None:
        question = state["question"]
        tools.earlier.append(Earlier(question, tools.embed(question), state["answer"], state["used"]))
    return {"useful": True, "confirmed": True, "trace": [step]}


async def rewrite(state: Loop, runtime: Tools) -> Loop:
    """New queries that repair the failure at hand, perhaps one per part of the question; no exact term of it is lost.

    A reply without a usable query leaves the question itself, which then finds what comes after the documents already seen.
    """
    tools, settings, question = runtime.context, runtime.context.settings, state["question"]
    terms, claims = exact_terms(question), state.get("unsupported", [])
    prompt = tools.prompts.render(
        f"rewrite_{state['failure']}",
        question=question,
        tried="; ".join(state.get("queries", [question])),
        answer=state.get("answer", ""),
        claims="\n".join(f"- {claim}" for claim in claims) or state.get("answer", ""),
        terms=", ".join(terms) or "none",
        most=str(settings.sub_queries),
    )
    reply = await tools.small_model.ask("rewrite", prompt, settings.rewrite_tokens)
    queries = queries_of(reply.text, settings.sub_queries) or [question]
    missing = lost(terms, queries)
    queries[0] = " ".join([queries[0], *missing])
    step = {"node": "rewrite", "failure": state["failure"], "queries": queries, "restored": missing}
    return {"queries": queries, "retries": state["retries"] + 1, "corrected": True, "trace": [step]}


async def admit(state: Loop) -> Loop:
    """Retries have run out: give what was found, and say that it is unconfirmed."""
    step = {"node": "admit", "unconfirmed": True, "failure": state["failure"]}
    return {"confirmed": False, "answer": UNCONFIRMED + state["answer"], "trace": [step]}


def _holds(verdict: Verdict, threshold: float) -> bool:
    """A verdict that could not be read confirms nothing."""
    return verdict.source != "unreadable" and verdict.probabilities["Yes"] >= threshold


def _certainty(verdict: Verdict) -> dict[str, Any]:
    return {"p": rounded(verdict.probabilities["Yes"]), "source": verdict.source}
