"""How well the trained router's code does on published labels of Adaptive-RAG: python bench/adaptive_labels.py labels.jsonl

Each line of the file has a question, its label (A, B or C: none, one or several retrievals) and who labelled it. Cross-validated,
with the settings of `silver` in params.yaml; a question that occurs twice counts as it occurs first.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from rag_arena import embedders
from rag_arena.decisions import CHOICES
from rag_arena.params import load
from rag_arena.strategies.adaptive.router import cross_validated

CHOICE = dict(zip("ABC", CHOICES, strict=True))


def main(path: str) -> None:
    """Print accuracy and that of the commonest label: of all labels, and by labeller."""
    params = load(Path("params.yaml"))
    silver = params.silver
    first: dict[str, dict[str, str]] = {}
    for row in map(json.loads, Path(path).read_text(encoding="utf-8").splitlines()):
        first.setdefault(row["question"], row)
    rows = list(first.values())
    embedder = embedders.load(params.embedder)
    vectors = np.stack([embedder.dense(row["question"]) for row in rows])
    for labeller in ("all", *sorted({row["labeller"] for row in rows})):
        chosen = [i for i, row in enumerate(rows) if labeller in ("all", row["labeller"])]
        labels = [CHOICE[rows[i]["label"]] for i in chosen]
        predicted = cross_validated(vectors[chosen], labels, silver.inverse_regularisation, silver.folds, silver.seed)
        right = sum(label == said for label, said in zip(labels, predicted, strict=True))
        commonest = max(Counter(labels).values())
        n = len(labels)
        print(f"{labeller}: {right} of {n} right, {right / n:.1%}; the commonest label alone {commonest / n:.1%}")


if __name__ == "__main__":
    main(sys.argv[1])
