"""python -m rag_arena"""

from rag_arena.cli import main

main()
