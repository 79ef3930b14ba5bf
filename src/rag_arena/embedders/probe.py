"""Does the embedder answer?"""

from rag_arena import embedders
from rag_arena.params import Embedder as EmbedderParams
from rag_arena.params import Transport


def probe(params: EmbedderParams, transport: Transport) -> str:
    """What it answers to one text, which no ledger replays.

    Raises:
        ArenaError: it does not.
    """
    [[found]] = embedders.load(params, transport).documents([["one short text"]])
    return f"{params.kind if params.kind == 'minilm' else params.model} answers with {len(found.dense)} dimensions"
