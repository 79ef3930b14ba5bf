"""The only code that reads or writes an artifact.

An artifact is a Parquet file sorted by its key, so that equal rows give equal bytes. Its name and version stand in the file, so
that a foreign one is refused.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rag_arena.artifacts.schemas import Artifact
from rag_arena.errors import ArenaError
from rag_arena.wording import first_line

_VERSION = "1"


def table(artifact: Artifact, rows: Iterable[Mapping[str, Any]], note: Mapping[str, str] | None = None) -> pa.Table:
    """Rows as a table in the artifact's schema, sorted by key.

    `note` is kept in the file beside the artifact's name (the index keeps its embedder's identity there).

    Raises:
        ValueError: a row misses a column or has an unknown one, a value has the wrong type, or a key occurs twice.
            These are bugs of ours, not of the user.
    """
    rows = list(rows)
    names = set(artifact.schema.names)
    for row in rows:
        if set(row) != names:
            raise ValueError(f"{artifact.name}: columns {sorted(set(row) ^ names)} missing or unknown in {dict(row)}")
    try:
        built = pa.Table.from_pylist(rows, schema=artifact.schema)
    except pa.ArrowTypeError as error:
        raise ValueError(f"{artifact.name}: {error}") from error
    built = built.take(pc.sort_indices(built, [(column, "ascending") for column in artifact.key]))
    _check(artifact, built, artifact.name, ValueError)
    metadata = {"arena.artifact": artifact.name, "arena.version": _VERSION, **(note or {})}
    return built.replace_schema_metadata(metadata)


def write(path: Path, content: pa.Table | str) -> None:
    """Write a table made by `table`, or a text, to a temporary file and rename it: a reader never sees half a file.

    Raises:
        ArenaError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            temporary.write_text(content, encoding="utf-8")
        else:
            pq.write_table(content, temporary, compression="zstd", version="2.6", store_schema=True)
        os.replace(temporary, path)
    except OSError as error:
        raise ArenaError(f"{path}: cannot be written ({error.strerror or error}); free space or mend the rights") from error
    finally:
        if path.parent.is_dir():
            temporary.unlink(missing_ok=True)


def read(path: Path, artifact: Artifact, without: Collection[str] = ()) -> pa.Table:
    """Read an artifact and validate it; columns in `without` (long texts that a stage has no use for) stay on disk.

    Raises:
        ArenaError: the file is missing, is not a whole Parquet file, or is not this artifact.
    """
    if not path.is_file():
        raise ArenaError(f"{path}: missing; run the stage that makes it, or `snakemake --cores 4`, in the project's folder")
    try:
        file = pq.ParquetFile(path, memory_map=False)
        schema = file.schema_arrow
        found = file.read([name for name in schema.names if name not in without])
    except (pa.ArrowException, OSError) as error:
        raise ArenaError(f"{path}: not a whole Parquet file ({first_line(error)}); delete it and run again") from error
    metadata = {k.decode(): v.decode() for k, v in (schema.metadata or {}).items()}
    name, version = metadata.get("arena.artifact"), metadata.get("arena.version")
    if name != artifact.name or version != _VERSION:
        raise ArenaError(f"{path}: holds {name or 'a foreign table'}, not {artifact.name}; delete it and run again")
    if not schema.remove_metadata().equals(artifact.schema):
        raise ArenaError(f"{path}: columns differ from those of {artifact.name}; delete it and run again")
    _check(artifact, found, str(path), ArenaError)
    return found


def _check(artifact: Artifact, built: pa.Table, where: str, error: type[Exception]) -> None:
    for field in built.schema:
        if not field.nullable and built[field.name].null_count:
            raise error(f"{where}: column {field.name} has empty values; it must not")
    if len(set(zip(*(built[column].to_pylist() for column in artifact.key), strict=True))) != built.num_rows:
        raise error(f"{where}: the key {', '.join(artifact.key)} is not unique")
