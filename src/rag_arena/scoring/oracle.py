"""The ceiling of routing: what a router would reach that always chose the cheapest strategy that answers correctly.

Adaptive-RAG's oracle (Jeong et al. 2024, table 1), from the own answers of the strategies that a router chooses between.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from rag_arena.decisions import CHOICES, RETRIEVE
from rag_arena.scoring.groups import ALL, groups, mean
from rag_arena.scoring.silver import STRATEGIES, silver_label


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question in one cell: right or not (None: not known), searches made, tokens in and out, and a router's choice."""

    question_type: str
    correct: bool | None
    steps: int
    tokens: int
    choice: str | None

    @classmethod
    def of(cls, answer: Mapping[str, Any], correct: bool | None) -> Self:
        """From a row of answers. A step that searched for nothing is no search."""
        trace = json.loads(answer["trace"])
        steps = sum("hits" in step and step.get("query") != "" for step in trace)
        choice = next((step["choice"] for step in trace if step.get("decides") == RETRIEVE and "choice" in step), None)
        return cls(answer["question_type"], correct, steps, answer["tokens_in"] + answer["tokens_out"], choice)


Outcomes = Mapping[str, Outcome]  # by question id


def oracle_rows(mode: str, arms: Mapping[str, Outcomes], routed: Outcomes | None) -> Iterator[dict[str, Any]]:
    """A row per question type; none where a router would have nothing to choose between.

    Args:
        mode: how the strategies retrieve.
        arms: by choice, what became of the questions; choices whose strategy did not run are missing.
        routed: the same for `adaptive`, if it ran.

    A question counts if it is known of each of them whether it was right. Where no arm is right, the oracle chooses what silver
    labels choose by inductive bias, or the dearest arm that ran if that one did not.
    """
    there = [choice for choice in CHOICES if choice in arms]
    if len(there) < 2:
        return
    tables = [*(arms[choice] for choice in there), *([routed] if routed is not None else [])]
    every = tables[0]
    known = [q for q in every if all(q in table and table[q].correct is not None for table in tables)]
    for group in groups(outcome.question_type for outcome in every.values()):
        asked = [q for q in every if group in (ALL, every[q].question_type)]
        chosen = [q for q in known if q in asked]
        labels = {q: silver_label({c: bool(arms[c][q].correct) for c in there}, every[q].question_type)[0] for q in chosen}
        ideal = [arms[labels[q] if labels[q] in there else there[-1]][q] for q in chosen]
        best = mean(outcome.correct for outcome in ideal)
        ours = [routed[q] for q in chosen] if routed is not None else []
        reached = mean(outcome.correct for outcome in ours)
        counts = Counter(outcome.choice for outcome in ours)
        yield {
            "retrieval": mode,
            "question_type": group,
            "strategies": ", ".join(STRATEGIES[choice] for choice in there),
            "n_questions": len(chosen),
            "n_unknown": len(asked) - len(chosen),
            **{f"accuracy_{c}": mean(arms[c][q].correct for q in chosen) if c in arms else None for c in CHOICES},
            "accuracy_oracle": best,
            "accuracy_router": reached,
            "gap": best - reached if best is not None and reached is not None else None,
            "label_accuracy": mean(o.choice == labels[q] for q, o in zip(chosen, ours, strict=True)) if ours else None,
            **{f"chose_{c}": counts[c] if ours else None for c in CHOICES},
            "steps_oracle": mean(outcome.steps for outcome in ideal),
            "steps_router": mean(outcome.steps for outcome in ours),
            "tokens_oracle": mean(outcome.tokens for outcome in ideal),
            "tokens_router": mean(outcome.tokens for outcome in ours),
        }
