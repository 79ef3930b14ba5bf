"""The nearest known name to an unknown one."""

import difflib
from collections.abc import Sequence


def nearest(name: str, known: Sequence[str]) -> str:
    """The end of an error message about an unknown name: the nearest known one, or all of them."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(known)}"
