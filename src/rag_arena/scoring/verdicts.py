"""How good yes-or-no verdicts are against a truth that is known, and whether chance explains it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from rag_arena.records import LEVEL
from rag_arena.scoring.groups import mean

BETTER, NO_BETTER = "better than chance", "no better than chance"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict: what was said (None: undecided), the truth (None: not known), the probability of yes where there was one."""

    said: bool | None
    truth: bool | None
    p: float | None
    source: str | None


def quality(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Counts, shares, accuracy, precision and recall of yes, and the test against chance.

    `auc` is the probability that a true case has a higher p than a false one, ties counting half (Mann and Whitney 1947), and
    `p_chance` the one-sided test of it; verdicts without probabilities have the AUC of their two values, and Fisher's exact test.
    `chance` says the result in words. All three are None where true or false cases are missing.
    """
    decided = [v for v in verdicts if v.said is not None]
    known = [v for v in decided if v.truth is not None]
    yes, true = [v for v in known if v.said], [v for v in known if v.truth]
    auc, p_chance = _against_chance(known)
    return {
        "n": len(verdicts),
        "n_undecided": len(verdicts) - len(decided),
        "n_known": len(known),
        "yes_rate": mean(v.said for v in decided),
        "true_rate": mean(v.truth for v in known),
        "accuracy": mean(v.said == v.truth for v in known),
        "precision": mean(v.truth for v in yes),
        "recall": mean(v.said for v in true),
        "auc": auc,
        "p_chance": p_chance,
        "chance": None if p_chance is None else BETTER if p_chance < LEVEL else NO_BETTER,
        **{source: mean(v.source == source for v in verdicts) for source in ("logprobs", "schema", "unreadable")},
    }


def _against_chance(known: Sequence[Verdict]) -> tuple[float | None, float | None]:
    true, false = ([v for v in known if v.truth is truth] for truth in (True, False))
    if not true or not false:
        return None, None
    if graded := all(v.p is not None for v in known):
        of_true, of_false = (np.array([v.p for v in side], dtype=float) for side in (true, false))
    else:
        of_true, of_false = (np.array([v.said for v in side], dtype=float) for side in (true, false))
    test = stats.mannwhitneyu(of_true, of_false, alternative="greater")
    auc = float(test.statistic) / (len(true) * len(false))
    if graded:
        return auc, float(test.pvalue)
    table = [[int(side.sum()), int(len(side) - side.sum())] for side in (of_true, of_false)]
    return auc, float(stats.fisher_exact(table, alternative="greater").pvalue)
