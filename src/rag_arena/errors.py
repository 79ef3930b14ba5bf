"""The one exception that is meant for the user."""


class ArenaError(Exception):
    """A mistake the user can mend: one line that names the file, key, row or URL and says what to do.

    The command line prints it without a traceback and exits with 1. Anything else that escapes is a bug.
    """


class EndpointError(ArenaError):
    """A model endpoint refuses every request alike (wrong key, unknown model, nobody listening): stop at once."""
