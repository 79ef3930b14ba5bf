"""Prompt files: Markdown with $names, one per node, in the strategy's folder or in shared/."""

from pathlib import Path
from string import Template

_FOLDER = Path(__file__).parent


class Prompts:
    """The prompts that one strategy reads."""

    def __init__(self, strategy: str) -> None:
        self._folders = (_FOLDER / strategy, _FOLDER / "shared")

    def render(self, name: str, **values: str) -> str:
        """A prompt with its names filled in.

        Raises:
            FileNotFoundError: neither folder holds `name`.md.
            KeyError: the prompt has a name that `values` lacks.
        """
        for folder in self._folders:
            path = folder / f"{name}.md"
            if path.is_file():
                return Template(path.read_text(encoding="utf-8").strip()).substitute(values)
        raise FileNotFoundError(f"{name}.md in none of {', '.join(map(str, self._folders))}")
