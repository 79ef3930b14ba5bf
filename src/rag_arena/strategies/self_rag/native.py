"""Self-RAG's own reflection tokens, read from a served checkpoint (for example vLLM with selfrag/selfrag_llama2_7b).

One completion per document holds everything: [Relevant]text[Fully supported][Utility:5]. Each critique is read at its token's
place, from the log-probabilities of the alternatives there. As in the released code, the text of earlier segments is given back
with its tokens but without their passages.
"""

from collections.abc import Mapping, Sequence
from math import exp, fsum

from rag_arena.decisions import Grade
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.client import Message, Token
from rag_arena.strategies.self_rag.path import Path, Segment
from rag_arena.strategies.self_rag.reflection import EVEN, Need
from rag_arena.strategies.self_rag.score import RELEVANT, RETRIEVE, SUPPORTED, USEFUL, expectation
from rag_arena.strategies.state import Toolbox

RETRIEVAL, NO_RETRIEVAL, READ_ON = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"
NEEDED = {RETRIEVAL: "Yes", NO_RETRIEVAL: "No"}
IS_RELEVANT = {"[Relevant]": "Relevant", "[Irrelevant]": "Irrelevant"}
IS_SUPPORTED = {"[Fully supported]": "Fully", "[Partially supported]": "Partially", "[No support / Contradictory]": "No"}
IS_USEFUL = {f"[Utility:{digit}]": digit for digit in USEFUL}
SEGMENT_ENDS = (RETRIEVAL, NO_RETRIEVAL, READ_ON)
NOT_TEXT = {*SEGMENT_ENDS, *IS_RELEVANT, *IS_SUPPORTED, *IS_USEFUL, "<paragraph>", "</paragraph>", "<s>", "</s>"}


class Native:
    """Everything from the tokens of a completion."""

    async def need(self, tools: Toolbox, question: str, path: Path) -> Need:
        """Retrieve, from the token that would come next; even odds where neither [Retrieval] nor [No Retrieval] is likely."""
        reply = await _continued(tools, "decide", _prompt(tools, question, path), 1)
        found = _probabilities(reply.tokens[0])
        p = expectation(_classes(found, NEEDED), RETRIEVE)
        reads_on = bool(path.segments) and found.get(READ_ON, 0.0) > max(found.get(RETRIEVAL, 0.0), found.get(NO_RETRIEVAL, 0.0))
        outside = max(0.0, 1 - fsum(found.get(token, 0.0) for token in SEGMENT_ENDS))
        return Need(0.5, "unreadable", 1.0, reads_on) if p is None else Need(p, "logprobs", outside, reads_on)

    async def write(self, tools: Toolbox, question: str, path: Path, doc_id: str | None) -> Segment:
        """The next segment: in long form up to the next retrieval token, in short form up to [Retrieval]."""
        short = tools.settings.form == "short"
        given = NO_RETRIEVAL
        if doc_id:
            document = tools.document(doc_id)
            given = f"{RETRIEVAL}<paragraph>{document.title}\n{document.text}</paragraph>"
        limit = tools.settings.max_tokens if short else tools.settings.segment_tokens
        reply = await _continued(tools, "generate", _prompt(tools, question, path) + given, limit)
        tokens = _until(reply.tokens, (RETRIEVAL,) if short else SEGMENT_ENDS)
        text = [token for token in tokens if token.text not in NOT_TEXT]
        relevant = expectation(_classes(_probabilities(tokens[0]), IS_RELEVANT), RELEVANT) if doc_id and tokens else None
        return Segment(
            text=_joined(text).strip(),
            doc_id=doc_id,
            ends=reply.finish_reason == "stop" and len(tokens) == len(reply.tokens),
            finish_reason=reply.finish_reason,
            written=(RETRIEVAL if doc_id else NO_RETRIEVAL) + _joined(tokens),
            likelihood=exp(fsum(token.logprob for token in text) / len(text)) if text else None,
            relevant=relevant,
            supported=_read(tokens, IS_SUPPORTED, SUPPORTED) if doc_id else None,
            useful=_read(tokens, IS_USEFUL, USEFUL),
            sources=("logprobs",),
        )

    async def grades(self, _tools: Toolbox, _question: str, segments: Sequence[Segment]) -> list[Grade]:
        """IsRel as it came with each segment; a document whose reply began with neither token is kept with even odds."""
        known = [(s.doc_id or "", EVEN if s.relevant is None else s.relevant, s.relevant is None) for s in segments]
        return [Grade(doc_id, p, p >= EVEN, "unreadable" if unread else "logprobs") for doc_id, p, unread in known]

    async def criticise(self, _tools: Toolbox, _question: str, path: Path, _relevant: float | None) -> Path:
        """The path as it is: the critique came with the text."""
        return path


def _prompt(tools: Toolbox, question: str, path: Path) -> str:
    beginning = tools.prompts.render("native", question=question)
    return beginning + "\n" + "".join(segment.written for segment in path.segments)


async def _continued(tools: Toolbox, node: str, prompt: str, max_tokens: int) -> Message:
    model = tools.model
    asked = {"logprobs": model.endpoint.top_logprobs, "skip_special_tokens": False}
    reply = await model.continue_text(node, prompt, max_tokens, **asked)
    if not reply.text:
        raise ArenaError(f"{model.endpoint.model}: an empty reply at {node}; raise max_tokens")
    if not reply.tokens:
        raise EndpointError(
            f"{model.endpoint.base_url}: gives no log-probabilities, and the native variant reads nothing else; raise "
            "llm.endpoint.top_logprobs or set strategy.self_rag.variant to prompted"
        )
    return reply


def _until(tokens: Sequence[Token], ends: Sequence[str]) -> list[Token]:
    """Tokens up to the first of `ends` that follows some text."""
    begun = False
    for position, token in enumerate(tokens):
        if begun and token.text in ends:
            return list(tokens[:position])
        begun = begun or token.text not in NOT_TEXT
    return list(tokens)


def _joined(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


def _probabilities(token: Token) -> dict[str, float]:
    return {text: exp(logprob) for text, logprob in token.alternatives.items()}


def _classes(probabilities: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    return {name: probabilities.get(token, 0.0) for token, name in names.items()}


def _read(tokens: Sequence[Token], names: Mapping[str, str], values: Mapping[str, float]) -> float | None:
    """A critique at the first place where one of its tokens stands; None when none does."""
    said = next((token for token in tokens if token.text in names), None)
    return expectation(_classes(_probabilities(said), names), values) if said else None
