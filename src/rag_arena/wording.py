"""Numbers and errors in sentences."""


def count(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_line(error: Exception) -> str:
    """What a library's error says first, or its name if it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
