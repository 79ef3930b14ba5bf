"""Text files of the user's: are they there, and the objects that they hold, each with where it stands."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError

_BEGINS = {
    b"\x1f\x8b": "is packed by gzip; unpack it",
    b"\xff\xfe": "is UTF-16; convert the file to UTF-8",
    b"\xfe\xff": "is UTF-16; convert the file to UTF-8",
}
Row = tuple[str, Mapping[str, Any]]  # where it stands, for messages, and what it holds


def present(path: Path, mend: str) -> None:
    """Is this file there?

    Raises:
        ArenaError: it is missing or is a folder.
    """
    if path.is_dir():
        raise ArenaError(f"{path}: a folder, where a file should be; put the file in its place")
    if not path.is_file():
        raise ArenaError(f"{path}: missing; {mend}")


def text(path: Path) -> str:
    """A file's text, without a byte order mark.

    Raises:
        ArenaError: it is not UTF-8.
    """
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        known = next((said for begins, said in _BEGINS.items() if content.startswith(begins)), None)
        raise ArenaError(f"{path}: {known or f'byte {error.start} is not UTF-8; convert the file to UTF-8'}") from error


def objects(path: Path) -> Iterator[Row]:
    """The objects of a file of JSON Lines or of one JSON array, whatever its suffix.

    Raises:
        ArenaError: naming file and line (in an array: entry): not UTF-8, not JSON, not an object, or half a surrogate pair.
    """
    content = text(path).rstrip()  # else a fault at the end is told by the line after
    if content.lstrip().startswith("["):
        try:
            array = json.loads(content)
        except json.JSONDecodeError as error:
            raise ArenaError(f"{path}:{error.lineno}: not JSON ({error.msg})") from error
        entries = ((f"{path}, entry {i}", entry) for i, entry in enumerate(array, 1))
    else:
        entries = ((f"{path}:{number}", _parsed(path, number, line)) for number, line in _lines(content))
    for where, entry in entries:
        if not isinstance(entry, dict):
            raise ArenaError(f"{where}: not a JSON object")
        try:
            json.dumps(entry, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ArenaError(f"{where}: holds half a surrogate pair, which is no text; mend the escape") from error
        yield where, entry


def _lines(content: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(content.split("\n"), 1) if line.strip())


def _parsed(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ArenaError(f"{path}:{number}: not JSON ({error.msg})") from error
