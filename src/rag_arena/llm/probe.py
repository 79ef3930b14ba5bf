"""What a model server can do, asked once and past the ledger, so that an old reply hides nothing.

Each question of `Probe` is one that a run will put, in the words of the configuration; what comes back otherwise is one line that
names the key to set.
"""

import difflib
from typing import Any

import httpx2
import openai

from rag_arena.errors import ArenaError
from rag_arena.llm.client import key_of, raw_tokens_of, request_settings
from rag_arena.llm.keys import blotted
from rag_arena.llm.reasoning import opens_thought, split_reasoning
from rag_arena.llm.refusals import explain, other_limit, other_shapes
from rag_arena.llm.verdicts import from_words, in_shape
from rag_arena.params import Llm

_COUNT = "Count from one to fifty."  # takes more tokens than a verdict, unless thoughts are to fit in as well
_VERDICT, _CLASSES = "Is Paris the capital of France? Answer Yes or No.", ("Yes", "No")
_JSON_VERDICTS = "verdicts are asked for in JSON, with probability 0 or 1"
_NEAREST = 5


class Probe:
    """The questions put to one server. Each method raises ArenaError where the server differs from its configuration."""

    def __init__(self, llm: Llm, section: str) -> None:
        self._endpoint, self._transport = llm.endpoint, llm.transport
        self._key = f"{section}.endpoint"  # where a mend is to be made
        self._section = section
        self._url = llm.endpoint.base_url.rstrip("/")

    def reply(self) -> str:
        """A short reply, with the sampling settings that every request carries."""
        most = self._endpoint.verdict_tokens
        written = getattr(self._ask(_COUNT, most).usage, "completion_tokens", None) or 0
        if written > most:
            raise ArenaError(
                f"{self._url}: wrote {written} tokens where {most} were the most; {other_limit(self._endpoint, self._section)}"
            )
        return f"{self._endpoint.model} at {self._url} answers"

    def logprobs(self) -> str:
        """As many likeliest tokens as verdicts are to be read from."""
        wanted = self._endpoint.top_logprobs
        if not wanted:
            return f"not asked for; {_JSON_VERDICTS}"
        choice = self._ask(_VERDICT, 1, logprobs=True, top_logprobs=wanted).choices[0]
        tokens = getattr(choice.logprobs, "content", None) or []
        given = len(tokens[0].top_logprobs or []) if tokens else 0
        if not given:
            until = f"then {_JSON_VERDICTS}; until then each costs a request more"
            raise ArenaError(f"{self._url}: gives none; set {self._key}.top_logprobs to 0: {until}")
        if opens_thought(choice.message.content or ""):
            raise ArenaError(
                f"{self._url}: the first token is a thought; set {self._key}.top_logprobs to 0: then {_JSON_VERDICTS}"
            )
        if given < wanted:
            raise ArenaError(f"{self._url}: gives {given} likeliest tokens of {wanted}; set {self._key}.top_logprobs to {given}")
        return f"the {given} likeliest tokens; verdicts are probabilities"

    def structure(self) -> str:
        """A verdict in the shape that is configured."""
        shape = self._endpoint.structured_output
        prompt, fields = in_shape(_VERDICT, shape, _CLASSES)
        text = split_reasoning(self._ask(prompt, self._endpoint.verdict_tokens, **fields).choices[0].message.content or "")[1]
        if not text:
            room = f"nothing but thoughts in {self._endpoint.verdict_tokens} tokens"
            raise ArenaError(f"{self._url}: {room}; raise {self._key}.verdict_tokens, and other limits of replies as well")
        if from_words(text, _CLASSES).source == "unreadable" or (shape != "none" and not text.startswith("{")):
            said = " ".join(blotted(text).split())[:60]
            mend = other_shapes(self._endpoint, self._section)
            raise ArenaError(f"{self._url}: replies {said!r} in spite of {shape}; {mend}")
        return f"{shape} is obeyed" if shape != "none" else "none asked for; a verdict in words can be read"

    def raw(self) -> str:
        """A raw completion with the log-probabilities of its tokens, which self_rag's native variant reads."""
        asked = {
            **request_settings(self._endpoint, 1, "max_tokens"),
            "logprobs": self._endpoint.top_logprobs,
            "skip_special_tokens": False,
        }
        instead = "set strategy.self_rag.variant to prompted, or serve the checkpoint with vLLM"
        try:
            with self._client() as client:
                completion = client.completions.create(model=self._endpoint.model, prompt=_VERDICT, extra_body=asked)
            tokens = raw_tokens_of(completion.choices[0].logprobs)
        except openai.NotFoundError as error:
            raise ArenaError(f"{self._url}: has no /completions; {instead}") from error
        except openai.OpenAIError as error:
            raise explain(error, self._endpoint, self._section) from error
        if not tokens or not tokens[0].alternatives:
            raise ArenaError(f"{self._url}: its /completions gives no likeliest tokens; {instead}")
        return f"/completions gives the {len(tokens[0].alternatives)} likeliest tokens"

    def context(self) -> str:
        """How long a prompt and its reply may be together, where the server tells."""
        models = self._models(self._url) or []
        names = (self._endpoint.model, f"{self._endpoint.model}:latest")  # Ollama's name of a model without a tag
        entry = next((m for m in models if m.get("id") in names), models[0] if len(models) == 1 else {})
        served = "" if entry.get("id") in (None, *names) else f" (the model is called {entry['id']} there)"
        owner = entry.get("owned_by")
        root = self._url.removesuffix("/v1")
        if owner == "llamacpp" and (props := self._get(f"{root}/props")):
            return f"{props.get('default_generation_settings', {}).get('n_ctx')} tokens in each slot{served}"
        if owner == "library" and (loaded := self._get(f"{root}/api/ps")):
            length = next((m.get("context_length") for m in loaded.get("models") or [] if m.get("name") in names), None)
            return f"{length or 'unknown'} tokens; Ollama cuts longer prompts silently, OLLAMA_CONTEXT_LENGTH sets the length"
        # vLLM's name of it, Groq's, llama.cpp's in training
        known = (entry.get("max_model_len"), entry.get("context_window"), (entry.get("meta") or {}).get("n_ctx_train"))
        tokens = next((length for length in known if length), None)
        return f"{tokens} tokens{served}" if tokens else f"the server does not tell{served}"

    def _ask(self, prompt: str, max_tokens: int, **more: Any) -> Any:
        try:
            with self._client() as client:
                completion: Any = client.chat.completions.create(
                    model=self._endpoint.model,
                    messages=[{"role": "user", "content": prompt}],
                    extra_body={**request_settings(self._endpoint, max_tokens), **more},
                )
        except openai.NotFoundError as error:
            raise self._absent(error) from error
        except openai.OpenAIError as error:
            raise explain(error, self._endpoint, self._section) from error
        except ValueError:  # 200, said to be JSON, and not
            completion = None
        if not getattr(completion, "choices", None):
            raise ArenaError(f"{self._endpoint.base_url}: 200 without a chat completion; mend {self._key}.base_url")
        return completion

    def _client(self) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=self._url, api_key=key_of(self._endpoint), max_retries=0, timeout=self._transport.deadline_s
        )

    def _absent(self, error: openai.NotFoundError) -> ArenaError:
        """What is not found: the model, or the API itself under this URL."""
        model = self._endpoint.model
        names = [entry["id"] for entry in self._models(self._url) or []]
        if names and model not in names:
            nearest = ", ".join(difflib.get_close_matches(model, names, _NEAREST, cutoff=0))
            return ArenaError(f"{self._url}: has no model {model!r}; set {self._key}.model; the nearest it has: {nearest}")
        if not names and self._models(f"{self._url}/v1") is not None:
            return ArenaError(f"{self._url}: 404; set {self._key}.base_url to {self._url}/v1")
        return explain(error, self._endpoint, self._section)

    def _models(self, url: str) -> list[dict[str, Any]] | None:
        """The entries of the server's list of models; None where it gives no such list."""
        listed = self._get(f"{url}/models")
        if not listed or listed.get("object") != "list":
            return None
        return [entry for entry in listed.get("data") or [] if isinstance(entry, dict) and isinstance(entry.get("id"), str)]

    def _get(self, url: str) -> dict[str, Any] | None:
        try:
            authorised = {"authorization": f"Bearer {key_of(self._endpoint)}"}
            reply = httpx2.get(url, headers=authorised, timeout=self._transport.deadline_s)
            found = reply.json() if reply.status_code == 200 else None
        except (httpx2.HTTPError, ValueError):
            return None
        return found if isinstance(found, dict) else None
