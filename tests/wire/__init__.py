"""Model servers as they speak: one file each, with a reply of every kind in the server's own shape."""

from tests.wire.groq import GROQ, NO_SCHEMA
from tests.wire.llamacpp import LLAMACPP
from tests.wire.ollama import OLLAMA
from tests.wire.openai import NO_CREDIT, NO_LOGPROBS, OPENAI, REASONING
from tests.wire.server import Server
from tests.wire.vllm import TOO_MANY_LOGPROBS, VLLM

SERVERS = {server.option: server for server in (OPENAI, REASONING, GROQ, VLLM, OLLAMA, LLAMACPP)}
__all__ = [
    "GROQ",
    "LLAMACPP",
    "NO_CREDIT",
    "NO_LOGPROBS",
    "NO_SCHEMA",
    "OLLAMA",
    "OPENAI",
    "REASONING",
    "SERVERS",
    "TOO_MANY_LOGPROBS",
    "VLLM",
    "Server",
]
