"""dataset: where questions and documents come from. One section per kind, each with a loader of its name in `sources/`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rag_arena.params.sections import Natural, Positive, Section

Text = Annotated[str, Field(min_length=1)]


class Chunking(Section):
    """How long texts are cut: each chunk is a document for retrieval and prompts, and counts as its document for evidence."""

    characters: Positive = Field(description="longest chunk, in characters")
    overlap: Natural = Field(description="characters at the end of a chunk that the next one repeats, at most")

    @model_validator(mode="after")
    def _moves_on(self) -> "Chunking":
        if self.overlap >= self.characters:
            raise ValueError("overlap must be less than characters")
        return self


class Source(Section):
    """What every kind of dataset has."""

    name: str = Field(description="name shown in tables")
    path: Text = Field(description="file or folder that is read, relative to the project or absolute; both runners track it")
    licence: str = Field(description="licence of the data, kept with the tables")
    chunking: Chunking | None = Field(None, description="null: texts are kept whole")


class RagRouter(Source):
    """A folder with Corpus.json and Question.json in RAGRouter-Bench's shape."""

    kind: Literal["ragrouter"] = Field(description="a folder with Corpus.json and Question.json")


class HotpotQa(Source):
    """HotpotQA's official JSON: one file, a pool of paragraphs with every question."""

    kind: Literal["hotpotqa"] = Field(description="HotpotQA's official JSON")


class TwoWiki(Source):
    """2WikiMultihopQA's official JSON: HotpotQA's shape with evidence triples."""

    kind: Literal["2wikimultihopqa"] = Field(description="2WikiMultihopQA's official JSON")


class Synthetic(Source):
    """Invented documents and questions of any number, for measuring how time and memory grow."""

    kind: Literal["synthetic"] = Field(description="invented documents and questions")
    seed: Natural = Field(description="seed of the generator; the same seed, sizes and words give the same bytes")
    documents: Positive = Field(description="documents in all; those that no question needs are distractors")
    multi_hop: Natural = Field(description="questions with 2 to 4 gold documents, in the proportions of RAGRouter's MuSiQue")
    single_hop: Natural = Field(description="questions with one gold document")
    summary: Natural = Field(description="questions with 5 gold documents and a reference of about 100 words")


Dataset = Annotated[RagRouter | HotpotQa | TwoWiki | Synthetic, Field(discriminator="kind")]
