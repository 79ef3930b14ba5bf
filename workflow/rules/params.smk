# params.yaml is checked before anything reads it, so that what is wrong with it is told in one line.
import sys
from pathlib import Path

from rag_arena import strategies
from rag_arena.errors import ArenaError
from rag_arena.params import load

try:
    PARAMS = load(Path("params.yaml"))
    strategies.check(PARAMS)
except ArenaError as error:
    sys.exit(f"arena: {error}")
