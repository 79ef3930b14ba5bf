"""dataset: where questions and documents come from. One section per kind, each with a loader of its name in `sources/`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from rag_arena.params.sections import Natural, Positive, Section, holds_password
from rag_arena.records import QuestionType

Text = Annotated[str, Field(min_length=1)]


def _inside(name: str) -> str:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError("must lie in dataset.path, which is what both runners track")
    return name


Inside = Annotated[Text, AfterValidator(_inside)]
Column = Annotated[str, Field(min_length=1, pattern='^[^"]+$')]


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


class Pools(Source):
    """One file of questions, each with its own pool of paragraphs."""

    limit: Positive | None = Field(None, description="questions read, the file's first ones, with their paragraphs; null: all")


class HotpotQa(Pools):
    """HotpotQA's official JSON: one file, a pool of paragraphs with every question."""

    kind: Literal["hotpotqa"] = Field(description="HotpotQA's official JSON")


class TwoWiki(Pools):
    """2WikiMultihopQA's official JSON: HotpotQA's shape with evidence triples."""

    kind: Literal["2wikimultihopqa"] = Field(description="2WikiMultihopQA's official JSON")


class Musique(Source):
    """RAGRouter-Bench's MuSiQue subset from the Hugging Face hub; in `path` MuSiQue's own files may lie, to be joined."""

    kind: Literal["musique"] = Field(description="RAGRouter-Bench from the Hugging Face hub")
    hub: Text = Field(description="name of the dataset on the hub")
    config: Text = Field(description="its configuration")
    revision: Text = Field(description="branch or commit; only a commit always gives the same data")


class MusiqueOfficial(Pools):
    """MuSiQue-Ans as its authors publish it: one file of JSON Lines."""

    kind: Literal["musique_official"] = Field(description="MuSiQue-Ans's JSON Lines")


class Synthetic(Source):
    """Invented documents and questions of any number, for measuring how time and memory grow."""

    kind: Literal["synthetic"] = Field(description="invented documents and questions")
    seed: Natural = Field(description="seed of the generator; the same seed, sizes and words give the same bytes")
    documents: Positive = Field(description="documents in all; those that no question needs are distractors")
    multi_hop: Natural = Field(description="questions with 2 to 4 gold documents, in the proportions of RAGRouter's MuSiQue")
    single_hop: Natural = Field(description="questions with one gold document")
    summary: Natural = Field(description="questions with 5 gold documents and a reference of about 100 words")


class QuestionColumns(Section):
    """Which column of the questions holds what. An optional one may be missing under its default name."""

    question_id: Text = Field("question_id", description="optional: without it questions are numbered from 1")
    question: Text = Field("question", description="what is asked")
    answer: Text = Field("answer", description="the reference answer")
    aliases: Text = Field("aliases", description="optional: a list of other accepted answers")
    gold_ids: Text = Field("gold_ids", description="optional: a list of the documents that hold the evidence")
    question_type: Text = Field("question_type", description="optional: multi_hop, single_hop or summary")


class Columns(QuestionColumns):
    """Which column of the documents and of the questions holds what."""

    doc_id: Text = Field("doc_id", description="optional: without it documents are numbered from 1")
    title: Text = Field("title", description="optional")
    text: Text = Field("text", description="the document")


class Tables(Source):
    """A folder with a table of questions: JSON Lines, JSON, CSV or Parquet, by its suffix."""

    questions: Inside = Field(description="file of the questions, in the folder `path`")
    columns: QuestionColumns = Field(description="which column holds what")
    question_type: QuestionType = Field("single_hop", description="type of questions for which the file names none")
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        None, description="between the cells of a line of CSV; null: a comma, in .tsv a tab"
    )
    list_separator: Text = Field("|", description="between the items of a list in one cell; a cell may also hold a JSON list")


class Local(Tables):
    """Two tables of the user's own, documents and questions."""

    kind: Literal["local"] = Field(description="two tables of your own")
    documents: Inside = Field(description="file of the documents, in the folder `path`")
    columns: Columns = Field(description="which column holds what")
    metadata: list[Column] = Field([], description="columns of the documents that are kept beside them")
    filter_by: list[Column] = Field(
        [], description="columns of both files: a question finds only documents that have its own value in each of them"
    )


class Wikipedia(Tables):
    """Pages of a MediaWiki by their titles, and a table of questions."""

    kind: Literal["wikipedia"] = Field(description="pages of a wiki, and a table of your own questions")
    titles: Inside = Field(description="file of titles, one per line, in the folder `path`")
    base_url: str = Field(description="the wiki's api.php, as https://en.wikipedia.org/w/api.php")

    @model_validator(mode="after")
    def _is_public(self) -> "Wikipedia":
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must start with http:// or https://")
        if holds_password(self.base_url):
            raise ValueError("base_url must not hold a password, which would be kept with the results")
        return self


Dataset = Annotated[
    RagRouter | Musique | MusiqueOfficial | HotpotQa | TwoWiki | Synthetic | Local | Wikipedia, Field(discriminator="kind")
]
