"""Platt scaling: the sigmoid that turns a score into a probability of relevance (Platt 1999, section 2.2).

P(relevant | s) = 1 / (1 + exp(-(s - tau) / T)), fitted by maximum likelihood. The targets are Platt's (n+ + 1) / (n+ + 2) for
relevant and 1 / (n- + 2) for other documents instead of 1 and 0, so that T stays over 0 where a score separates them perfectly.
"""

from collections.abc import Sequence

import numpy as np

from rag_arena.params import Sigmoid


def fit(scores: Sequence[float], relevant: Sequence[bool]) -> Sigmoid | None:
    """The sigmoid of scores and whether each belongs to a relevant document.

    None where there is nothing to fit: all documents of one kind, or relevant ones that do not score higher.
    """
    from sklearn.linear_model import LogisticRegression  # a second to import, and cells read only what was fitted

    s, y = np.array(scores, dtype=float), np.array(relevant, dtype=bool)
    n_relevant, n_other = int(y.sum()), int((~y).sum())
    if not n_relevant or not n_other or s.std() == 0:
        return None
    x = ((s - s.mean()) / s.std()).reshape(-1, 1)
    target = np.where(y, (n_relevant + 1) / (n_relevant + 2), 1 / (n_other + 2))
    # a target between 0 and 1 is a relevant document of that weight beside another of the rest
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    model.fit(np.vstack([x, x]), np.repeat([1, 0], len(s)), np.concatenate([target, 1 - target]))
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    if slope <= 0:
        return None
    return Sigmoid(tau=float(s.mean() - s.std() * intercept / slope), temperature=float(s.std() / slope))
