"""Keys of services: read from the environment alone, and blotted out of what is kept and shown."""

import json
import os

from rag_arena.errors import EndpointError

_SECRET_LENGTH = 12  # of keys that are blotted out; shorter ones are words for servers without keys, and occur in any answer
_given: set[str] = set()  # by this process to a service


def key_from(variable: str, where: str, otherwise: str) -> str:
    """The key that an environment variable holds; empty if no variable is named.

    Args:
        variable: its name, or empty for a service without keys.
        where: who wants the key, as errors are to begin.
        otherwise: how the advice to set the variable goes on.

    Raises:
        EndpointError: it is not set, or holds what no header can carry.
    """
    key = header_from(variable, where) if variable else ""
    if variable and not key:
        raise EndpointError(f"{where}: needs a key; set {variable}{otherwise}")
    if len(key) >= _SECRET_LENGTH:
        _given.add(key)
    return key


def header_from(variable: str, where: str) -> str:
    """What an environment variable holds for a header, without white space around it; empty if it is not set.

    Raises:
        EndpointError: it holds what no header can carry.
    """
    value = os.environ.get(variable, "").strip()
    if not (value.isascii() and value.isprintable()):
        raise EndpointError(f"{where}: {variable} holds a line break or a character outside ASCII; set it anew")
    return value


def blotted(text: str) -> str:
    """A text in which every key is blotted out, as it is and as JSON writes it: servers echo keys, and errors are kept and shown.

    To be used before a text is cut.
    """
    for key in _given:
        written = json.dumps(key)[1:-1]
        for form in (key, written, written.replace("/", r"\/")):
            text = text.replace(form, "***")
    return text
