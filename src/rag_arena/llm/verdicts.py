"""Verdicts as probabilities: a question that a model answers with one of a few words.

The probabilities are read from the log-probabilities of a reply of one token. A server that gives none is asked again for a
verdict in JSON, which then has probability 1; a reply that names no class leaves all classes equally likely. `source` tells these
apart, so that no reader takes one for another.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_arena.llm.client import ChatModel
from rag_arena.llm.reasoning import opens_thought

Source = Literal["logprobs", "schema", "unreadable"]
_WORDS_OF_ONE_LETTER = ("a", "i")  # these are said for themselves; any other letter alone begins a word, as F does in F|ully


@dataclass(frozen=True, slots=True)
class Verdict:
    """Probabilities of the classes, summing to 1, and the mass that the reply's first token gave to none of them."""

    probabilities: Mapping[str, float]
    outside: float
    source: Source

    @property
    def best(self) -> str:
        """The likeliest class, the first of equals."""
        return max(self.probabilities, key=lambda name: self.probabilities[name])


async def classify(model: ChatModel, node: str, prompt: str, classes: Sequence[str]) -> Verdict:
    """Ask for one of a few words and read how likely each is. At most two calls.

    Args:
        model: who is asked.
        node: the step that asks, for the record of calls.
        prompt: a question that says which words to choose from.
        classes: those words; none may begin with another.

    Raises:
        EndpointError: the endpoint refuses every request alike.
        ArenaError: a request failed after all retries.
    """
    endpoint = model.endpoint
    if endpoint.top_logprobs:
        message = await model.ask(node, prompt, 1, logprobs=True, top_logprobs=endpoint.top_logprobs)
        if message.text and message.tokens and not (message.thoughts or opens_thought(message.text)):
            verdict = from_alternatives(message.tokens[0].alternatives, classes)
            if verdict is not None:
                return verdict
    asked, shape = in_shape(prompt, endpoint.structured_output, classes)
    return from_words((await model.ask(node, asked, endpoint.verdict_tokens, **shape)).text, classes)


def from_alternatives(alternatives: Mapping[str, float], classes: Sequence[str]) -> Verdict | None:
    """Sum the probability of every alternative first token that spells a class; None when none does.

    Args:
        alternatives: log-probability of each alternative token.
        classes: the words to choose from.
    """
    mass = dict.fromkeys(classes, 0.0)
    for token, logprob in alternatives.items():
        if (name := class_of(token, classes)) is not None:
            mass[name] += math.exp(logprob)
    total = math.fsum(mass.values())
    if total <= 0:
        return None
    return Verdict({name: m / total for name, m in mass.items()}, max(0.0, 1 - total), "logprobs")


def class_of(token: str, classes: Sequence[str]) -> str | None:
    """The class that a token spells, or begins as the only one: case, spaces and punctuation around it do not count."""
    word = token.strip(" \t\n\r\u2581\u0120\u010a.,:;!?*\"'()[]{}").casefold()
    if not word:
        return None
    exact = [name for name in classes if name.casefold() == word]
    if exact:
        return exact[0]
    begun = [name for name in classes if name.casefold().startswith(word)] if word not in _WORDS_OF_ONE_LETTER else []
    return begun[0] if len(begun) == 1 else None


def in_shape(prompt: str, structured_output: str, classes: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """A prompt and the fields of its request that ask for a verdict as the endpoint's `structured_output` says."""
    if structured_output == "none":
        return prompt, {}
    if structured_output == "json_object":  # OpenAI and Groq refuse it where the prompt does not mention JSON
        choices = " or ".join(map(json.dumps, classes))
        return f'{prompt}\nReply in JSON: {{"verdict": {choices}}}', {"response_format": {"type": "json_object"}}
    schema = {
        "type": "object",
        "properties": {"verdict": {"type": "string", "enum": list(classes)}},
        "required": ["verdict"],
        "additionalProperties": False,
    }
    return prompt, {
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema, "strict": True}}
    }


def from_words(text: str, classes: Sequence[str]) -> Verdict:
    """The one class that a reply names, with probability 1; all alike where it names none or several."""
    named = {name for word in _words(text) if (name := class_of(word, classes)) is not None}
    if len(named) == 1:
        chosen = named.pop()
        return Verdict({name: float(name == chosen) for name in classes}, 0.0, "schema")
    return Verdict(dict.fromkeys(classes, 1 / len(classes)), 1.0, "unreadable")


def _words(text: str) -> list[str]:
    """The values of the JSON object that a reply holds, fenced or not; of any other reply the first word."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        parsed = json.loads(found.group()) if found else None
    except ValueError:
        parsed = None
    return [str(value) for value in parsed.values()] if parsed is not None else text.split(maxsplit=1)[:1]
