"""A dataset of the Hugging Face hub in RAGRouter-Bench's layout, read through `datasets`, which keeps what it fetched."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.llm.keys import header_from
from rag_arena.sources.files import Row

_SCHEME = "hf://datasets/"


@dataclass(frozen=True, slots=True)
class Address:
    """Where both files of a configuration lie, and the name of the dataset for messages."""

    name: str
    questions: str
    corpus: str

    @property
    def source(self) -> str:
        """The dataset and the commit that was read, as OWNER/NAME@COMMIT; empty for a folder of this machine."""
        return "/".join(self.questions.removeprefix(_SCHEME).split("/")[:2]) if self.questions.startswith(_SCHEME) else ""


def find(hub: str, config: str, revision: str) -> Address:
    """Where a configuration's Question.json lies, and Corpus.json beside it.

    Args:
        hub: the dataset's name on the hub, or a folder with the same layout.
        config: the configuration, which names Question.json alone.
        revision: a branch or a commit.

    Raises:
        ArenaError: the hub cannot be reached, or has no such dataset, configuration or revision, or
            the configuration is no Question.json.
    """
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    name = f"{hub} ({config}, {revision})"
    header_from("HF_TOKEN", name)
    try:
        builder = datasets.load_dataset_builder(hub, config, revision=revision)
    except ConnectionError as error:
        raise ArenaError(f"{name}: the hub cannot be reached; go online, or fetch the files and choose dataset=folder") from error
    except (datasets.exceptions.DatasetsError, OSError, ValueError) as error:
        raise ArenaError(f"{name}: {_one_line(error)}; mend dataset.hub, dataset.config or dataset.revision") from error
    files = [str(file) for split in (builder.config.data_files or {}).values() for file in split]
    if len(files) != 1 or not files[0].endswith("/Question.json"):
        raise ArenaError(f"{name}: is {len(files)} files, not one Question.json as in Chaplain0908/RAGRouter; mend dataset.hub")
    return Address(name, files[0], files[0].replace("Question.json", "Corpus.json"))


def rows(address: Address, file: str) -> Iterator[Row]:
    """The rows of one of its files, without the fields that only other rows have.

    Raises:
        ArenaError: the file is missing, or is not JSON.
    """
    import datasets

    where = f"{address.name} {file.rpartition('/')[2]}"
    try:
        found = datasets.load_dataset("json", data_files=file, split="train")
    except (datasets.exceptions.DatasetsError, OSError) as error:
        raise ArenaError(f"{where}: {_one_line(error.__cause__ or error)}; mend dataset.config or dataset.revision") from error
    return ((f"{where}, row {number}", _given(row)) for number, row in enumerate(found, 1))


def _given(value: Any) -> Any:
    # a table has every field in every row; what a row did not have is None there
    if isinstance(value, Mapping):
        return {key: _given(each) for key, each in value.items() if each is not None}
    return [_given(each) for each in value] if isinstance(value, list) else value


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
