"""What a variant of Self-RAG must answer, whether by asking or by reading tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rag_arena.decisions import Grade
from rag_arena.strategies.self_rag.path import Path, Segment
from rag_arena.strategies.state import Toolbox

EVEN = 0.5  # IsRel is Relevant or Irrelevant, whichever is likelier


@dataclass(frozen=True, slots=True)
class Need:
    """Retrieve: P(Yes) / (P(Yes) + P(No)), how it came about, and the mass given to neither.

    `reads_on` says that the passage at hand is to be read on instead.
    """

    p: float
    source: str
    outside: float
    reads_on: bool = False


class Reflection(Protocol):
    """The four reflections of the paper, and the writing between them."""

    async def need(self, tools: Toolbox, question: str, path: Path, /) -> Need:
        """Retrieve: does the next segment of a path need documents?"""

    async def write(self, tools: Toolbox, question: str, path: Path, doc_id: str | None, /) -> Segment:
        """The next segment from one document or from none; its text is empty when the model has nothing to say."""

    async def grades(self, tools: Toolbox, question: str, segments: Sequence[Segment], /) -> list[Grade]:
        """IsRel of the document behind each segment."""

    async def criticise(self, tools: Toolbox, question: str, path: Path, relevant: float | None, /) -> Path:
        """The path with IsRel, IsSup and IsUse of its last segment filled in."""
