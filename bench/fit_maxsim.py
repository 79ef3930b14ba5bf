"""Fit the constants of conf/reranker/maxsim.yaml: python bench/fit_maxsim.py

For every question of the demo's calibration split, the hybrid candidates and the gold documents are scored by late interaction;
a logistic regression of "is gold" on the score s gives P = 1 / (1 + exp(-(a s + b))), so T = 1 / a and tau = -b / a.
The evaluation split is never read. Needs the artifacts of `make run`.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from rag_arena import artifacts, embedders, layout
from rag_arena.params import load
from rag_arena.records import Document
from rag_arena.rerankers.maxsim import MaxSim


def main() -> None:
    """Print tau, T, the number of pairs and how well the score separates them."""
    params = load(layout.PARAMS)
    chosen = set(artifacts.read(layout.CALIBRATION, artifacts.SAMPLE)["question_id"].to_pylist())
    texts = {
        row["doc_id"]: Document(row["doc_id"], row["title"], row["text"]).full_text
        for row in artifacts.read(layout.CORPUS, artifacts.CORPUS).to_pylist()
    }
    candidates: dict[str, set[str]] = {}
    for row in artifacts.read(layout.hits("hybrid"), artifacts.HITS).to_pylist():
        candidates.setdefault(row["question_id"], set()).add(row["doc_id"])
    reranker = MaxSim(embedders.load(params.embedder))
    scores, labels = [], []
    for question in artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS).to_pylist():
        if question["question_id"] in chosen:
            ids = sorted(candidates[question["question_id"]] | set(question["gold_ids"]))
            scores += reranker.scores(question["question"], [texts[doc_id] for doc_id in ids])
            labels += [doc_id in question["gold_ids"] for doc_id in ids]
    x, y = np.array(scores).reshape(-1, 1), np.array(labels)
    model = LogisticRegression(C=np.inf).fit(x, y)
    a, b = float(model.coef_[0, 0]), float(model.intercept_[0])
    print(f"{len(chosen)} questions, {len(y)} pairs, {int(y.sum())} gold")
    print(f"mean score: gold {x[y].mean():.3f}, others {x[~y].mean():.3f}")
    print(f"tau: {-b / a:.4f}\ntemperature: {1 / a:.4f}")


main()
