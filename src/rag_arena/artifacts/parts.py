"""Finished pieces of an artifact under way, so that a run that was stopped need not make them again."""

import shutil
from pathlib import Path

import pyarrow as pa

from rag_arena.artifacts.files import read, write
from rag_arena.artifacts.schemas import Artifact
from rag_arena.errors import ArenaError


class Parts:
    """A folder with a file per piece, named by a key that says all that the piece was made from."""

    def __init__(self, folder: Path, artifact: Artifact) -> None:
        self._folder = folder
        self._artifact = artifact

    def get(self, key: str) -> pa.Table | None:
        """A finished piece; None if there is none, or none that can be read."""
        try:
            return read(self._path(key), self._artifact)
        except ArenaError:
            return None

    def put(self, key: str, piece: pa.Table) -> None:
        """Keep a finished piece.

        Raises:
            ArenaError: it cannot be written.
        """
        write(self._path(key), piece)

    def clear(self) -> None:
        """Forget all pieces, once the artifact is written."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.parquet"
