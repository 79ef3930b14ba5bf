"""What the beam is made of: segments, and paths of them."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of answer and its critique: one sentence in long form, the whole answer in short form.

    `doc_id` is the document it was written from, if any. `ends` says that the model had nothing to add. `written` is the text as
    the model wrote it, reflection tokens included. A term is None where it was not asked for or the model did not give it.
    `sources` and `outside` say of each verdict (IsSup where there is a document, IsUse) how it came about and how much mass the
    model gave to no class.
    """

    text: str
    doc_id: str | None
    ends: bool
    finish_reason: str
    written: str
    likelihood: float | None
    relevant: float | None = None
    supported: float | None = None
    useful: float | None = None
    sources: tuple[str, ...] = ()
    outside: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """Segments so far, and what the next may be written from: documents, None for the model alone; empty: still to be fetched."""

    segments: tuple[Segment, ...] = ()
    evidence: tuple[str | None, ...] = ()
    ended: bool = False

    @property
    def answer(self) -> str:
        """The text so far."""
        return " ".join(segment.text for segment in self.segments)

    @property
    def documents(self) -> list[str]:
        """The documents behind it, in order of first use."""
        return list(dict.fromkeys(segment.doc_id for segment in self.segments if segment.doc_id is not None))

    def extended(self, segment: Segment) -> "Path":
        """The path with one more segment."""
        return Path((*self.segments, segment), ended=segment.ends)

    def judged(self, **critique: object) -> "Path":
        """The path with the critique of its last segment filled in."""
        return replace(self, segments=(*self.segments[:-1], replace(self.segments[-1], **critique)))  # type: ignore[arg-type]
