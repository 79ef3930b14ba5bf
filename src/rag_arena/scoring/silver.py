"""Silver labels: how much retrieval a question would have needed (Adaptive-RAG, Jeong et al. 2024, section 3.2)."""

from collections.abc import Mapping

from rag_arena.decisions import CHOICES, NONE, ONE, SEVERAL

STRATEGIES = {NONE: "no_retrieval", ONE: "vanilla", SEVERAL: "iterative"}  # what a choice does
ANSWERED, INDUCTIVE_BIAS = "answered", "inductive bias"
_BIAS = {"single_hop": ONE, "multi_hop": SEVERAL, "summary": SEVERAL}  # what questions of a type are made to need


def silver_label(correct: Mapping[str, bool], question_type: str) -> tuple[str, str]:
    """The cheapest choice that answered correctly; where none did, what questions of this type are made to need.

    Args:
        correct: by choice, whether its strategy answered correctly; choices may be missing.
        question_type: single_hop, multi_hop or summary.

    Returns:
        the choice, and whether it answered or stands by inductive bias.
    """
    for choice in CHOICES:
        if correct.get(choice):
            return choice, ANSWERED
    return _BIAS[question_type], INDUCTIVE_BIAS
