"""dataset: where questions and documents come from."""

from typing import Literal

from pydantic import Field

from rag_arena.params.sections import Section


class Dataset(Section):
    """Where questions and documents come from."""

    name: str = Field(description="name shown in tables")
    kind: Literal["ragrouter"] = Field(description="shape of the files: Corpus.json and Question.json")
    path: str = Field(description="folder that holds the files, relative to the project or absolute")
    licence: str = Field(description="licence of the data, kept with the results")
