"""What every server sends, and when: to whom, with which key, for which fields."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.stub import Answer, Body, Stub, with_json

# What the one token of a verdict is likely to be; twenty alternatives, as all but Groq give.
LIKELIEST = {" Yes": 0.75, " No": 0.125, **{f" {letter}": 0.125 / 2**i for i, letter in enumerate("abcdefghijklmopqrs", 1)}}
VERDICT = '{"verdict": "Yes"}'


@dataclass(frozen=True)
class Server:
    """One server's replies, by the option of conf/llm that is meant for it."""

    option: str
    model: str
    models: Sequence[Mapping[str, Any]]  # entries of GET /v1/models
    chat: Callable[[str, Any], Body]  # a reply with this text and these log-probabilities
    wrong_key: Answer
    unknown_model: Answer | None  # None: any name will do
    too_long: Answer
    busy: Answer | None
    refused: Mapping[str, Answer] = field(default_factory=dict)  # by a field that it does not take
    raw: Callable[[int], Body] | None = None  # a raw completion with so many alternatives
    others: Mapping[str, Body] = field(default_factory=dict)  # further paths that may be read
    key: str = ""  # empty: none is asked for

    def behaviour(self, stub: Stub) -> Callable[[Body], Answer]:
        """How it answers, for the stub server to do the same."""

        def behave(body: Body) -> Answer:
            authorised = {name.lower(): value for name, value in stub.headers[-1].items()}.get("authorization")
            if self.key and authorised != f"Bearer {self.key}":
                return self.wrong_key
            if "path" in body:
                listed = {"/v1/models": {"object": "list", "data": list(self.models)}, **self.others}.get(body["path"])
                return with_json(listed) if listed else with_json({"detail": "Not Found"}, 404)
            names = [entry["id"].removesuffix(":latest") for entry in self.models]
            if self.unknown_model and body["model"].removesuffix(":latest") not in names:
                return self.unknown_model
            if "prompt" in body:
                return with_json(self.raw(body["logprobs"])) if self.raw else with_json({"error": "404 page not found"}, 404)
            for name, answer in self.refused.items():
                if name in body:
                    return answer
            if "response_format" in body:
                return with_json(self.chat(VERDICT, None))
            if body.get("logprobs"):
                return with_json(self.chat(" Yes", likeliest(body["top_logprobs"])))
            return with_json(self.chat("1, 2, 3, 4, 5,", None))

        return behave


def likeliest(count: int, **more: Any) -> dict[str, Any]:
    top = [{"token": token, "logprob": math.log(p), "bytes": list(token.encode()), **more} for token, p in LIKELIEST.items()]
    return {"content": [{**top[0], "top_logprobs": top[:count]}]}


def usage(**details: Any) -> Body:
    return {"prompt_tokens": 14, "completion_tokens": 16, "total_tokens": 30, **details}
