"""Self-RAG's reflections as questions to a general model: the paper's tokens by other means, the same formulas after them."""

import asyncio
from dataclasses import dataclass

from rag_arena.llm.verdicts import Verdict, classify
from rag_arena.strategies.self_rag.score import RETRIEVE, SUPPORTED, USEFUL, Path, Segment
from rag_arena.strategies.sentences import sentences
from rag_arena.strategies.state import Toolbox
from rag_arena.strategies.steps import passage


@dataclass(frozen=True, slots=True)
class Critique:
    """Verdicts on a path's last segment; no support to speak of without a document."""

    supported: Verdict | None
    useful: Verdict


async def wants(tools: Toolbox, question: str, path: Path) -> Verdict:
    """Retrieve: is a passage needed to answer, or to continue?"""
    name = "retrieve_more" if path.segments else "retrieve"
    prompt = tools.prompts.render(name, question=question, answer=path.answer)
    return await classify(tools.small_model, "decide", prompt, tuple(RETRIEVE))


async def write(tools: Toolbox, question: str, path: Path, doc_id: str | None) -> Segment:
    """The next segment of a path, from one document or from none; its text is empty when the model has nothing to say."""
    settings = tools.settings
    name = ("continue" if path.segments else "answer") if doc_id else ("continue_closed_book" if path.segments else "closed_book")
    context = passage(tools.document(doc_id)) if doc_id else ""
    prompt = tools.prompts.render(name, question=question, context=context, answer=path.answer)
    tokens = settings.max_tokens if settings.form == "short" else settings.segment_tokens
    asked = {"logprobs": True, "top_logprobs": 1} if tools.model.endpoint.top_logprobs else {}
    reply = await tools.model.ask("generate", prompt, tokens, **asked)
    pieces = [reply.text] if settings.form == "short" else sentences(reply.text)
    text = pieces[0] if pieces else ""
    ends = reply.finish_reason == "stop" and len(pieces) <= 1
    return Segment(text, doc_id, ends, reply.finish_reason, text, reply.likelihood(text))


async def criticise(tools: Toolbox, question: str, path: Path) -> Critique:
    """IsSup of a path's last segment, given its document, and IsUse of the answer so far."""
    segment = path.segments[-1]
    useful = tools.prompts.render("useful", question=question, answer=path.answer)
    questions = [classify(tools.small_model, "critique", useful, tuple(USEFUL))]
    if segment.doc_id:
        context = passage(tools.document(segment.doc_id))
        supported = tools.prompts.render("supported", question=question, context=context, segment=segment.text)
        questions.append(classify(tools.small_model, "critique", supported, tuple(SUPPORTED)))
    use, *support = await asyncio.gather(*questions)
    return Critique(support[0] if support else None, use)
