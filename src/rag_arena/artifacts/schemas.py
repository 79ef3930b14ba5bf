"""The columns of every artifact, and the key that orders and identifies its rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

_STRINGS = pa.list_(pa.string())
_METADATA = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class Artifact:
    """Columns and the key that orders and identifies the rows."""

    name: str
    key: tuple[str, ...]
    schema: pa.Schema


def _artifact(name: str, key: tuple[str, ...], columns: Mapping[str, pa.DataType], nullable: Iterable[str] = ()) -> Artifact:
    nulls = set(nullable)
    return Artifact(name, key, pa.schema([pa.field(c, t, nullable=c in nulls) for c, t in columns.items()]))


_S, _I, _F, _B = pa.string(), pa.int64(), pa.float64(), pa.bool_()
CORPUS = _artifact("corpus", ("doc_id",), {"doc_id": _S, "title": _S, "text": _S, "metadata": _METADATA})
QUESTIONS = _artifact(
    "questions",
    ("question_id",),
    {
        "question_id": _S,
        "question": _S,
        "answer": _S,
        "aliases": _STRINGS,
        "question_type": _S,
        "gold_ids": _STRINGS,
        "decomposition": pa.list_(pa.struct([("question", _S), ("answer", _S), ("doc_id", _S)])),
        "where": _METADATA,
        "origin": _S,
    },
    nullable=("origin",),
)
INDEX = _artifact(
    "index",
    ("doc_id",),
    {
        "doc_id": _S,
        "text_sha256": _S,
        "dense": pa.list_(pa.float32()),
        "sparse_indices": pa.list_(pa.uint32()),
        "sparse_values": pa.list_(pa.float32()),
    },
)
VECTORS = _artifact(
    "vectors",
    ("text_sha256",),
    {field.name: field.type for field in INDEX.schema if field.name != "doc_id"},
)
SAMPLE = _artifact(
    "sample",
    ("question_id",),
    {"question_id": _S, "question_type": _S, "stratum_size": _I, "stratum_weight": _F},
)
HITS = _artifact(
    "hits",
    ("question_id", "rank"),
    {"question_id": _S, "rank": _I, "doc_id": _S, "score": _F, "cosine": _F},
)
SEARCH_TIMINGS = _artifact("search_timings", ("question_id",), {"question_id": _S, "seconds": _F})
RETRIEVALS = _artifact(
    "retrievals",
    ("scorer", "question_id"),
    {"scorer": _S, "question_id": _S, "best": _F, "label": _S},
    nullable=("best", "label"),
)
SIGMOIDS = _artifact(
    "sigmoids",
    ("scorer",),
    {"scorer": _S, "n_relevant": _I, "n_other": _I, "tau": _F, "temperature": _F},
    nullable=("tau", "temperature"),
)
THRESHOLDS = _artifact(
    "thresholds",
    ("scorer", "separates"),
    {
        "scorer": _S,
        "separates": _S,
        "n_good": _I,
        "n_acceptable": _I,
        "n_bad": _I,
        "n_unlabelled": _I,
        "cut": _F,
        "precision": _F,
        "recall": _F,
    },
    nullable=("cut", "precision", "recall"),
)
_ADDED = ("gain_widen", "documents_widen", "characters_widen", "gain_other_lane", "documents_other_lane", "characters_other_lane")
CANDIDATES = _artifact(
    "candidates",
    ("scorer", "threshold"),
    {
        "scorer": _S,
        "threshold": _F,
        "n_questions": _I,
        "n_corrected": _I,
        "correction_rate": _F,
        "precision": _F,
        "recall": _F,
        **dict.fromkeys(_ADDED, _F),
    },
    nullable=("precision", "recall", "gain_widen", "gain_other_lane"),
)
SILVER = _artifact(
    "silver",
    ("question_id",),
    {"question_id": _S, "question_type": _S, "none": _B, "one": _B, "several": _B, "label": _S, "origin": _S},
    nullable=("none", "one", "several", "label", "origin"),
)
ROUTER = _artifact("router", ("choice",), {"choice": _S, "n_labels": _I, "intercept": _F, "coefficients": pa.list_(pa.float64())})
CONFUSION = _artifact("confusion", ("label", "predicted"), {"label": _S, "predicted": _S, "n_questions": _I})
ROUTER_QUALITY = _artifact(
    "router_quality",
    ("retrieval",),
    {
        "retrieval": _S,
        "n_questions": _I,
        "n_failed": _I,
        "n_none": _I,
        "n_one": _I,
        "n_several": _I,
        "n_inductive_bias": _I,
        "accuracy": _F,
        "majority": _F,
        "degenerate": _B,
    },
    nullable=("accuracy", "majority", "degenerate"),
)
RESOLVED = _artifact("resolved", ("key",), {"key": _S, "value": _S, "origin": _S})
ANSWERS = _artifact(
    "answers",
    ("question_id",),
    {
        "question_id": _S,
        "question_type": _S,
        "status": _S,
        "error": _S,
        "answer": _S,
        "retrieved_ids": _STRINGS,
        "used_ids": _STRINGS,
        "contexts": _STRINGS,
        "corrected": _B,
        "changed": _B,
        "llm_calls": _I,
        "tokens_in": _I,
        "tokens_out": _I,
        "small_tokens_in": _I,
        "small_tokens_out": _I,
        "trace": _S,
    },
    nullable=("error", "answer", "corrected", "changed"),
)
CALLS = _artifact(
    "calls",
    ("question_id", "position"),
    {
        "question_id": _S,
        "position": _I,
        "node": _S,
        "key": _S,
        "endpoint": _S,
        "request": _S,
        "reply": _S,
        "tokens_in": _I,
        "tokens_out": _I,
        "latency_s": _F,
        "replayed": _B,
    },
)
TIMINGS = _artifact(
    "timings",
    ("question_id",),
    {"question_id": _S, "llm_s": _F, "search_s": _F, "grading_s": _F, "recorded_searches": _I, "replayed_calls": _I},
)
JUDGEMENTS = _artifact(
    "judgements",
    ("question_id",),
    {
        "question_id": _S,
        "question_type": _S,
        "accuracy_first": _I,
        "accuracy_second": _I,
        "answer_accuracy": _F,
        "accuracy_error": _S,
        "claims": _I,
        "supported": _I,
        "faithfulness": _F,
        "faithfulness_error": _S,
        "echo": _B,
        "judge_calls": _I,
        "tokens_in": _I,
        "tokens_out": _I,
    },
    nullable=(
        "accuracy_first",
        "accuracy_second",
        "answer_accuracy",
        "accuracy_error",
        "claims",
        "supported",
        "faithfulness",
        "faithfulness_error",
        "echo",
    ),
)
KNOWN_TRUTH = _artifact(
    "known_truth",
    ("question_id", "kind"),
    {
        "question_id": _S,
        "kind": _S,
        "candidate": _S,
        "is_correct": _B,
        "accuracy_first": _I,
        "accuracy_second": _I,
        "answer_accuracy": _F,
        "error": _S,
    },
    nullable=("accuracy_first", "accuracy_second", "answer_accuracy", "error"),
)
SCORES = _artifact(
    "scores",
    ("strategy", "retrieval", "question_id"),
    {
        "strategy": _S,
        "retrieval": _S,
        "question_id": _S,
        "question_type": _S,
        "recall": _F,
        "precision": _F,
        "em": _F,
        "f1": _F,
        "contains": _F,
        "rouge_l": _F,
        "answer_accuracy": _F,
        "faithfulness": _F,
        "correct": _B,
        "failure": _S,
    },
    nullable=(
        "recall",
        "precision",
        "em",
        "f1",
        "contains",
        "rouge_l",
        "answer_accuracy",
        "faithfulness",
        "correct",
        "failure",
    ),
)
_MEANS = ("recall", "precision", "em", "f1", "contains", "rouge_l", "answer_accuracy", "faithfulness")
LEADERBOARD = _artifact(
    "leaderboard",
    ("strategy", "retrieval", "question_type"),
    {
        "strategy": _S,
        "retrieval": _S,
        "question_type": _S,
        "n_planned": _I,
        "n_with_gold": _I,
        "n_generated": _I,
        "n_answered": _I,
        "n_failed": _I,
        "n_judged": _I,
        "n_judge_failed": _I,
        **dict.fromkeys(_MEANS, _F),
        "correction_rate": _F,
        "changed_rate": _F,
        "llm_calls": _I,
        "tokens_in": _I,
        "tokens_out": _I,
        "cost_usd": _F,
    },
    nullable=(*_MEANS, "correction_rate", "changed_rate"),
)
_VERDICT_QUALITY: dict[str, pa.DataType] = {
    **dict.fromkeys(("n", "n_undecided", "n_known"), _I),
    **dict.fromkeys(("yes_rate", "true_rate", "accuracy", "precision", "recall", "auc", "p_chance"), _F),
    "chance": _S,
    **dict.fromkeys(("logprobs", "schema", "unreadable"), _F),
}
_UNDEFINED = ("yes_rate", "true_rate", "accuracy", "precision", "recall", "auc", "p_chance", "chance")
DECISIONS = _artifact(
    "decisions",
    ("strategy", "retrieval", "question_type", "decision", "against"),
    {"strategy": _S, "retrieval": _S, "question_type": _S, "decision": _S, "against": _S, **_VERDICT_QUALITY},
    nullable=_UNDEFINED,
)
_ROUTED = ("accuracy_router", "gap", "label_accuracy", "steps_router", "tokens_router")
_CHOSEN = ("chose_none", "chose_one", "chose_several")
_CEILING = ("accuracy_none", "accuracy_one", "accuracy_several", "accuracy_oracle", "steps_oracle", "tokens_oracle")
ORACLE = _artifact(
    "oracle",
    ("retrieval", "question_type"),
    {
        "retrieval": _S,
        "question_type": _S,
        "strategies": _S,
        "n_questions": _I,
        "n_unknown": _I,
        **dict.fromkeys((*_CEILING, *_ROUTED), _F),
        **dict.fromkeys(_CHOSEN, _I),
    },
    nullable=(*_CEILING, *_ROUTED, *_CHOSEN),
)
CONTRASTS = _artifact(
    "contrasts",
    ("metric", "varies", "strategy", "retrieval"),
    {
        **dict.fromkeys(("metric", "varies", "strategy", "retrieval", "against"), _S),
        **dict.fromkeys(("n_questions", "n_clusters"), _I),
        **dict.fromkeys(("mean", "mean_against", "difference", "low", "high"), _F),
        **dict.fromkeys(("won", "lost", "tied"), _I),
        **dict.fromkeys(("p", "p_holm", "detectable"), _F),
    },
    nullable=("low", "high", "detectable"),
)
GRADERS = _artifact(
    "graders",
    ("strategy", "retrieval", "grader"),
    {
        "strategy": _S,
        "retrieval": _S,
        "grader": _S,
        **_VERDICT_QUALITY,
        "llm_calls": _I,
        "tokens_in": _I,
        "tokens_out": _I,
    },
    nullable=_UNDEFINED,
)
PATHS = _artifact(
    "paths",
    ("strategy", "retrieval", "question_type"),
    {
        "strategy": _S,
        "retrieval": _S,
        "question_type": _S,
        "n_answered": _I,
        "n_decided": _I,
        "bypass_rate": _F,
        "rounds_mean": _F,
        "rounds_max": _I,
        "correction_rate": _F,
        "changed_rate": _F,
        "gold_seen": _I,
        "gold_lost": _I,
        "gold_lost_rate": _F,
    },
    nullable=("bypass_rate", "rounds_mean", "rounds_max", "correction_rate", "changed_rate", "gold_lost_rate"),
)
NODE_COSTS = _artifact(
    "node_costs",
    ("strategy", "retrieval", "node"),
    {"strategy": _S, "retrieval": _S, "node": _S, "calls": _I, "tokens_in": _I, "tokens_out": _I},
)
SETTINGS = _artifact(
    "settings",
    ("strategy", "retrieval", "key"),
    {
        "strategy": _S,
        "retrieval": _S,
        "key": _S,
        "value": _S,
        "origin": _S,
        **dict.fromkeys(("n_good", "n_acceptable", "n_bad", "n_unlabelled"), _I),
    },
    nullable=("n_good", "n_acceptable", "n_bad", "n_unlabelled"),
)
JUDGE_QUALITY = _artifact(
    "judge_quality",
    ("strategy", "retrieval"),
    {
        "strategy": _S,
        "retrieval": _S,
        "accuracy_asked": _I,
        "accuracy_failed": _I,
        "disagreement_rate": _F,
        "faithfulness_asked": _I,
        "faithfulness_failed": _I,
        "echo_rate": _F,
        "tokens_in": _I,
        "tokens_out": _I,
        "cost_usd": _F,
    },
    nullable=("disagreement_rate", "echo_rate"),
)
JUDGE_TRUTH = _artifact(
    "judge_truth",
    ("kind",),
    {"kind": _S, "n_asked": _I, "n_failed": _I, "share_right": _F, "p_chance": _F},
    nullable=("share_right", "p_chance"),
)
RETRIEVAL_QUALITY = _artifact(
    "retrieval_quality",
    ("retrieval", "question_type"),
    {
        "retrieval": _S,
        "question_type": _S,
        "n_questions": _I,
        "recall_at_1": _F,
        "recall_at_3": _F,
        "recall_at_5": _F,
        "recall_at_10": _F,
        "mrr": _F,
        "empty_rate": _F,
    },
)
DISAGREEMENT = _artifact(
    "disagreement",
    ("retrieval_a", "retrieval_b"),
    {"retrieval_a": _S, "retrieval_b": _S, "n_questions": _I, "top_1_differs": _F, "top_3_overlap": _F},
)
