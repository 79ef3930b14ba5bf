"""How cells went about their questions: rounds, bypasses, corrections, and gold documents that were seen and not used."""

from collections.abc import Iterator, Sequence
from typing import Any

from rag_arena.records import Cell, documents_of
from rag_arena.scoring.decisions import Path, whether_to_retrieve
from rag_arena.scoring.groups import ALL, groups, mean


def path_rows(cell: Cell, paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """A row per question type. A round is a step that fetched documents, a bypass the decision not to retrieve."""
    for group in groups(path.question_type for path in paths):
        chosen = [path for path in paths if group in (ALL, path.question_type)]
        retrieve = [verdict for path in chosen if (verdict := whether_to_retrieve(path)) is not None]
        rounds = [sum("hits" in step for step in path.trace) for path in chosen]
        found = [path.gold.intersection(documents_of(path.retrieved)) for path in chosen]
        seen = sum(map(len, found))
        lost = sum(len(gold.difference(documents_of(path.used))) for gold, path in zip(found, chosen, strict=True))
        yield {
            "strategy": cell.strategy,
            "retrieval": cell.retrieval,
            "question_type": group,
            "n_answered": len(chosen),
            "n_decided": len(retrieve),
            "bypass_rate": mean(not verdict.said for verdict in retrieve),
            "rounds_mean": mean(rounds),
            "rounds_max": max(rounds, default=None),
            "correction_rate": mean(path.corrected for path in chosen),
            "changed_rate": mean(path.changed for path in chosen),
            "gold_seen": seen,
            "gold_lost": lost,
            "gold_lost_rate": lost / seen if seen else None,
        }
