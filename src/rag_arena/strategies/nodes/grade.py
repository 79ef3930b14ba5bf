"""Grade documents one by one: how likely is each to help with the question?"""

import asyncio
from collections.abc import Sequence

from rag_arena.decisions import GRADE, Grade
from rag_arena.llm.verdicts import classify
from rag_arena.strategies.state import Toolbox
from rag_arena.strategies.steps import passage

YES_NO = ("Yes", "No")


async def grades(tools: Toolbox, question: str, doc_ids: Sequence[str], floor: float) -> list[Grade]:
    """Grades in the order given, each document kept from `floor` on, by what `settings.grader` names.

    `llm`: the probability of Yes, by a small model. `cross_encoder`: the configured reranker's score through the calibrated
    sigmoid.
    """
    documents = [tools.document(doc_id) for doc_id in doc_ids]
    if tools.settings.grader == "cross_encoder":
        found = tools.relevance(question, [document.full_text for document in documents])
        return [Grade(doc_id, p, p >= floor, "cross_encoder") for doc_id, p in zip(doc_ids, found, strict=True)]
    prompts = [tools.prompts.render("relevant", question=question, passage=passage(document)) for document in documents]
    verdicts = await asyncio.gather(*(classify(tools.small_model, GRADE, prompt, YES_NO) for prompt in prompts))
    asked = zip(doc_ids, verdicts, [verdict.probabilities["Yes"] for verdict in verdicts], strict=True)
    return [Grade(doc_id, p, p >= floor, verdict.source, verdict.outside) for doc_id, verdict, p in asked]
