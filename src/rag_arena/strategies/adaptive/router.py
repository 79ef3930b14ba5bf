"""A trained router: multinomial logistic regression over a question's dense vector.

Adaptive-RAG (Jeong et al. 2024, arXiv:2403.14403) fine-tunes T5 for this. A linear model over the embedder that is loaded anyway
costs no model call and can be learnt from a few dozen labels.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rag_arena.decisions import CHOICES
from rag_arena.embedders import Floats
from rag_arena.params import Section


class Router(Section):
    """A line per choice that occurred among the labels: P(choice | x) is the softmax of intercept + coefficients . x."""

    choices: list[str]
    intercepts: list[float]
    coefficients: list[list[float]]

    def probabilities(self, vector: Floats) -> Mapping[str, float]:
        """How likely each choice is for the question that has this vector; a choice that no label had is left out."""
        scores = np.array(self.intercepts) + np.array(self.coefficients) @ np.asarray(vector, dtype=np.float64)
        odds = np.exp(scores - scores.max())
        return dict(zip(self.choices, (odds / odds.sum()).tolist(), strict=True))


def fit(vectors: NDArray[np.float32], labels: Sequence[str], inverse_regularisation: float) -> Router:
    """Learn a router. With labels of one class there is nothing to learn, and it always chooses that class.

    Args:
        vectors: one row per question.
        labels: the right choice of each.
        inverse_regularisation: C of the regression; smaller holds the coefficients closer to 0.
    """
    from sklearn.linear_model import LogisticRegression

    choices = [choice for choice in CHOICES if choice in labels]
    dimensions = vectors.shape[1]
    if len(choices) == 1:
        return Router(choices=choices, intercepts=[0.0], coefficients=[[0.0] * dimensions])
    found = LogisticRegression(C=inverse_regularisation, max_iter=10_000).fit(
        vectors.astype(np.float64), [choices.index(label) for label in labels]
    )
    intercepts, coefficients = found.intercept_, found.coef_
    if len(choices) == 2:  # the library keeps the second class's line alone; the first one's is 0
        intercepts, coefficients = np.array([0.0, *intercepts]), np.vstack([np.zeros(dimensions), coefficients])
    return Router(choices=choices, intercepts=intercepts.tolist(), coefficients=coefficients.tolist())


def cross_validated(
    vectors: NDArray[np.float32], labels: Sequence[str], inverse_regularisation: float, folds: int, seed: int
) -> list[str]:
    """For each question what a router learnt from the other folds would choose; nothing for a single question."""
    if len(labels) < 2:
        return []
    from sklearn.model_selection import KFold

    predicted = [""] * len(labels)
    for train, test in KFold(min(folds, len(labels)), shuffle=True, random_state=seed).split(vectors):
        router = fit(vectors[train], [labels[i] for i in train], inverse_regularisation)
        for i in test:
            predicted[i] = likeliest(router.probabilities(vectors[i]))
    return predicted


def likeliest(probabilities: Mapping[str, float]) -> str:
    """The most probable choice, the cheapest of equals."""
    return max((choice for choice in CHOICES if choice in probabilities), key=lambda choice: probabilities[choice])
