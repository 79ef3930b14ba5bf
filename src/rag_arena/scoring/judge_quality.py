"""The judge, judged: on pairs whose truth is known, and by how often it fails, contradicts itself or recites."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scipy import stats

from rag_arena.params import Price
from rag_arena.records import Cell
from rag_arena.scoring.answers import CORRECT_AT
from rag_arena.scoring.groups import ALL, mean


def judge_truth(pairs: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """How often the judge is right on pairs whose truth is known: per kind, and over all as balanced accuracy.

    A pair counts as accepted from a score of 0.75; a failed judgement accepts nothing and is right about nothing. `p_chance` is
    Fisher's one-sided exact test of "accepts right pairs no more often than wrong ones".
    """
    accepted = [(row["answer_accuracy"] or 0.0) >= CORRECT_AT for row in pairs]
    right = [row["error"] is None and a == row["is_correct"] for row, a in zip(pairs, accepted, strict=True)]
    for kind in sorted({row["kind"] for row in pairs}):
        chosen = [i for i, row in enumerate(pairs) if row["kind"] == kind]
        failed = sum(pairs[i]["error"] is not None for i in chosen)
        share = mean(right[i] for i in chosen)
        yield {"kind": kind, "n_asked": len(chosen), "n_failed": failed, "share_right": share, "p_chance": None}
    true, false = ([i for i, row in enumerate(pairs) if row["is_correct"] is truth] for truth in (True, False))
    both = true and false
    table = [[sum(accepted[i] is verdict for i in group) for verdict in (True, False)] for group in (true, false)]
    yield {
        "kind": ALL,
        "n_asked": len(pairs),
        "n_failed": sum(row["error"] is not None for row in pairs),
        "share_right": mean([mean(right[i] for i in true), mean(right[i] for i in false)]) if both else None,
        "p_chance": float(stats.fisher_exact(table, alternative="greater").pvalue) if both else None,
    }


def judge_quality(cell: Cell, judged: Sequence[Mapping[str, Any]], price: Price) -> dict[str, Any]:
    """How often each metric failed for a cell, how often its two ratings differ and its claims echo ragas's, and what it cost."""
    rated = [row for row in judged if row["accuracy_error"] is None]
    supported = [row for row in judged if row["echo"] is not None or row["faithfulness_error"] is not None]
    tokens_in, tokens_out = sum(row["tokens_in"] for row in judged), sum(row["tokens_out"] for row in judged)
    return {
        "strategy": cell.strategy,
        "retrieval": cell.retrieval,
        "accuracy_asked": len(judged),
        "accuracy_failed": len(judged) - len(rated),
        "disagreement_rate": mean(row["accuracy_first"] != row["accuracy_second"] for row in rated),
        "faithfulness_asked": len(supported),
        "faithfulness_failed": sum(row["faithfulness_error"] is not None for row in supported),
        "echo_rate": mean(row["echo"] for row in supported),
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost_usd": price.of(tokens_in, tokens_out),
    }
