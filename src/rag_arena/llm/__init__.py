"""One wire for every model call: an OpenAI-compatible request through a chain of httpx transports."""
