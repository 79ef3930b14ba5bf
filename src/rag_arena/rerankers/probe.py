"""Does the reranker answer, and on the scale that it is said to?"""

from rag_arena import embedders, rerankers
from rag_arena.errors import ArenaError
from rag_arena.params import Embedder as EmbedderParams
from rag_arena.params import Reranker as RerankerParams
from rag_arena.params import Transport
from rag_arena.rerankers.cross_encoder import CrossEncoder
from rag_arena.rerankers.http import Http
from rag_arena.rerankers.maxsim import MaxSim

_QUESTION = "Which river flows through Cologne?"
_TEXTS = ("Cologne is a city on the river Rhine, which flows through it.", "A sonnet is a poem of fourteen lines.")


def probe(params: RerankerParams, embedder: EmbedderParams, transport: Transport) -> str:
    """What it answers to one question and two passages, which no ledger replays.

    Raises:
        ArenaError: it does not, its scores are not on the scale that the parameters name, or they do not tell the passages apart.
    """
    if params.kind == "http":
        asked: rerankers.Reranker = Http(params, transport, recorded=False)
    elif params.kind == "cross_encoder":
        asked = CrossEncoder(params)
    else:
        asked = MaxSim(embedders.load(embedder, transport))
    scores = asked.scores(_QUESTION, _TEXTS)
    if params.kind == "http" and params.scores == "logits" and all(0 <= score <= 1 for score in scores):
        raise ArenaError(
            f"{params.base_url}: scores {scores[0]:.2f} and {scores[1]:.2f} look like probabilities; "
            "set reranker.scores to probabilities"
        )
    good, other = (rerankers.probability(score, params) for score in scores)
    name = params.kind if params.kind == "maxsim" else params.model
    found = f"{name} gives {good:.2f} to a passage that answers and {other:.2f} to one that does not"
    if scores[0] <= scores[1]:
        raise ArenaError(f"{found}; is it a reranker?")
    return found
