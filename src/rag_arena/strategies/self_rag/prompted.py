"""Self-RAG's reflections as questions to a general model: the paper's tokens by other means, the same formulas after them."""

import asyncio
from collections.abc import Sequence

from rag_arena.decisions import Grade
from rag_arena.llm.verdicts import classify
from rag_arena.strategies.nodes import grade
from rag_arena.strategies.self_rag.path import Path, Segment
from rag_arena.strategies.self_rag.reflection import EVEN, Need
from rag_arena.strategies.self_rag.score import RETRIEVE, SUPPORTED, USEFUL, expectation
from rag_arena.strategies.sentences import sentences
from rag_arena.strategies.state import Toolbox
from rag_arena.strategies.steps import passage


class Prompted:
    """One question per reflection; the answer's first token has the probabilities."""

    async def need(self, tools: Toolbox, question: str, path: Path) -> Need:
        """Retrieve: is a passage needed to answer, or to continue?"""
        name = "retrieve_more" if path.segments else "retrieve"
        prompt = tools.prompts.render(name, question=question, answer=path.answer)
        verdict = await classify(tools.small_model, "decide", prompt, tuple(RETRIEVE))
        return Need(expectation(verdict.probabilities, RETRIEVE) or 0.0, verdict.source, verdict.outside)

    async def write(self, tools: Toolbox, question: str, path: Path, doc_id: str | None) -> Segment:
        """The next segment: in short form the whole reply, in long form its first sentence that the path does not hold yet."""
        short = tools.settings.form == "short"
        name = (
            ("continue" if path.segments else "answer")
            if doc_id
            else ("continue_closed_book" if path.segments else "closed_book")
        )
        context = passage(tools.document(doc_id)) if doc_id else ""
        prompt = tools.prompts.render(name, question=question, context=context, answer=path.answer)
        tokens = tools.settings.max_tokens if short else tools.settings.segment_tokens
        asked = {"logprobs": True, "top_logprobs": 1} if tools.model.endpoint.top_logprobs else {}
        reply = await tools.model.ask("generate", prompt, tokens, **asked)
        said = {segment.text for segment in path.segments}
        pieces = [reply.text] if short else [sentence for sentence in sentences(reply.text) if sentence not in said]
        text = pieces[0] if pieces else ""
        ends = reply.finish_reason == "stop" and len(pieces) <= 1
        return Segment(text, doc_id, ends, reply.finish_reason, text, reply.likelihood(text))

    async def grades(self, tools: Toolbox, question: str, segments: Sequence[Segment]) -> list[Grade]:
        """IsRel, by what `grader` names; it depends on question and document alone."""
        return await grade.grades(tools, question, [segment.doc_id for segment in segments if segment.doc_id], EVEN)

    async def criticise(self, tools: Toolbox, question: str, path: Path, relevant: float | None) -> Path:
        """IsSup of the last segment, given its document, and IsUse of the answer so far."""
        segment = path.segments[-1]
        if segment.useful is not None:  # nothing was added to the path
            return path
        useful = tools.prompts.render("useful", question=question, answer=path.answer)
        questions = [classify(tools.small_model, "critique", useful, tuple(USEFUL))]
        if segment.doc_id:
            context = passage(tools.document(segment.doc_id))
            supported = tools.prompts.render("supported", question=question, context=context, segment=segment.text)
            questions.append(classify(tools.small_model, "critique", supported, tuple(SUPPORTED)))
        use, *support = await asyncio.gather(*questions)
        return path.judged(
            relevant=relevant,
            supported=expectation(support[0].probabilities, SUPPORTED) if support else None,
            useful=expectation(use.probabilities, USEFUL),
            sources=tuple(verdict.source for verdict in (*support, use)),
            outside=tuple(verdict.outside for verdict in (*support, use)),
        )
