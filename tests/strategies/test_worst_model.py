"""Every strategy, under every option of its settings, against models that say the worst: it ends within its bound of calls."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from pydantic import ValidationError

from rag_arena import strategies
from rag_arena.compose import compose
from rag_arena.decisions import ENOUGH, GROUNDED, KEEP, RETRIEVE
from rag_arena.errors import ArenaError
from rag_arena.metering import metered
from rag_arena.params import Params, validate
from rag_arena.records import Hit
from rag_arena.retrieval.retriever import RecordedRetriever, Retrievers
from tests.conftest import ROOT
from tests.strategies.harness import QUESTION, Answers, toolbox
from tests.stub import Answer, Body, completion, raw_completion, sensible, words

WEB = {"searxng", "wikipedia"}  # options that ask another server than the model's
TYPED = {"good": 0.6, "bad": 0.4}  # in place of auto, by what the threshold separates
SIGMOID = {"tau": 0.5, "temperature": 0.1}
ROUTER = {"choices": ["several"], "intercepts": [0.0], "coefficients": [[0.0] * 384]}  # what costs most

WORDS = [
    "Yes",
    "No",
    "Irrelevant",
    "Relevant",
    "Fully",
    "1",
    "5",
    "It rises in the Alps. It ends in the sea.",
    "answer is: nobody knows",
    "[Retrieval]",
    "[Relevant]It rises in the Alps.[Fully supported][Utility:5]",
]
RUBBISH = {"malformed JSON": '{"verdict": ["', "nothing": "", "blanks": " \n", "100,000 characters": "and so on " * 10_000}


def says(text: str, certain: bool) -> Answer:
    """A reply; when certain, with log-probabilities that leave no doubt."""
    return words(text, 1.0) if certain and text.strip() else completion(text)


def raw(answer: Answer) -> Answer:
    """The same reply as the completions endpoint gives it."""
    text = json.loads(answer.content)["choices"][0]["message"]["content"]
    return raw_completion([(piece, {piece: 1.0}) for piece in re.findall(r"\s*(?:\[[^]]*\]|[^\s[]+)", text)])


def moody(salt: int) -> Callable[[Body], Answer]:
    """Another word or rubbish for every request."""
    choices = [*WORDS, *(text for text in RUBBISH.values() if len(text) < 100)]

    def behave(body: Body) -> Answer:
        draw = hashlib.sha256(f"{salt}{json.dumps(body, sort_keys=True)}".encode()).digest()
        return says(choices[draw[0] % len(choices)], certain=bool(draw[1] % 2))

    return behave


MODELS: dict[str, Callable[[Body], Answer]] = {
    "sensible": sensible,
    **{f"always {word}": lambda body, word=word: says(word, certain=True) for word in WORDS},
    **{f"always {word} without log-probabilities": lambda body, word=word: says(word, certain=False) for word in WORDS[:3]},
    **{f"always {name}": lambda body, text=text: says(text, certain=False) for name, text in RUBBISH.items()},
    **{f"in mood {salt}": moody(salt) for salt in range(4)},
}


TELLING = [name for name in MODELS if name.startswith("in mood")] + ["always Yes", "always No", "always malformed JSON"]


class Nothing:
    """A retriever that never finds anything."""

    def search(self, query: str, k: int, exclude: frozenset[str] = frozenset()) -> list[Hit]:
        return []


@pytest.fixture(scope="module")
def everything() -> Params:
    """What composes when every strategy is chosen."""
    text = compose(ROOT / "conf", [f"strategy=[{','.join(strategies.known())}]"])
    return validate(yaml.safe_load(text), "conf")


def variants(strategy: str, params: Params) -> Iterator[Any]:
    """The strategy's settings as composed, then with each other option of each choice; what goes by calibration is typed in."""
    settings = strategies.settings(strategy, params)
    values, fields = settings.model_dump(), type(settings).model_fields
    for name, field in fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict) and "calibrated" in extra:
            values[name] = TYPED[extra["calibrated"]["separates"]]  # type: ignore[index,call-overload]
        elif name == "relevance":
            values[name] = SIGMOID
        elif name == "router":
            values[name] = ROUTER
    yield type(settings).model_validate(values)
    for name, field in fields.items():
        for choice in (c for c in options(field.annotation) if c != values[name] and c not in WEB):
            try:
                yield type(settings).model_validate({**values, name: choice})
            except ValidationError:
                continue  # a combination that params.yaml may not hold either


def options(annotation: Any) -> list[Any]:
    """The named choices of a setting; what an earlier stage puts numbers in place of is none."""
    if get_origin(annotation) is Literal:
        return [choice for choice in get_args(annotation) if choice not in ("auto", "trained")]
    return [choice for member in get_args(annotation) for choice in options(member)]


@pytest.mark.parametrize("strategy", strategies.known())
def test_every_graph_ends_within_its_bound_whatever_the_model_says(
    strategy: str, everything: Params, tiny: Retrievers, graphs: Answers
) -> None:
    live = RecordedRetriever({}, 0, lambda: tiny.of("hybrid"))
    composed, *others = variants(strategy, everything)
    chosen = [(composed, live, MODELS), (composed, Nothing(), MODELS), *((option, live, TELLING) for option in others)]
    runs = {
        f"{model}, {settings}, {retriever.__class__.__name__}": (MODELS[model], settings, retriever)
        for settings, retriever, models in chosen
        for model in models
    }

    def behave(body: Body) -> Answer:
        answer = runs[body["model"]][0](body)
        return raw(answer) if "prompt" in body else answer

    graphs.stub.behave = behave
    for name, calls, state, failure in asyncio.run(play(strategy, runs, everything, tiny, graphs)):
        bound = runs[name][1].max_calls
        assert calls <= bound, name
        assert sum(body["model"] == name for body in graphs.stub.requests) <= bound, name
        if failure is None:
            check(state)
        else:
            assert "empty" in failure, name


async def play(
    strategy: str, runs: Mapping[str, tuple[Any, Any, Any]], params: Params, tiny: Retrievers, graphs: Answers
) -> list[tuple[str, int, Any, str | None]]:
    """Each run's name, calls, final state and failure; its model goes by the run's name."""
    llm, graph = graphs.llm(concurrency=8), strategies.build(strategy)
    tools = {
        "second_lane": RecordedRetriever({}, 0, lambda: tiny.lane("sparse", 5)),
        "cosines": tiny.cosines,
        "relevance": lambda query, texts: tiny.relevance(query, texts, params.reranker),
        "embed": tiny.embed,
    }

    async def one(client: Any, name: str) -> tuple[str, int, Any, str | None]:
        _, settings, retriever = runs[name]
        endpoint = llm.endpoint.model_copy(update={"model": name})
        context = toolbox(strategy, client, endpoint, settings=settings, retriever=retriever, **tools)
        with metered() as meter:
            try:
                state: Any = await graph.ainvoke({"question": QUESTION}, context=context)  # type: ignore[misc]
            except ArenaError as error:
                return name, len(meter.calls), None, str(error)
        return name, len(meter.calls), state, None

    async with graphs.connect(llm) as client:
        return await asyncio.gather(*(one(client, name) for name in runs))


def check(state: Any) -> None:
    """What holds of every answered question."""
    assert state["answer"].strip()
    assert set(state.get("used", [])) <= set(state.get("retrieved", []))
    for step in json.loads(json.dumps(state["trace"])):
        assert isinstance(step["node"], str)
        assert step.get("decides") in (None, RETRIEVE, KEEP, ENOUGH, GROUNDED)
        if step.get("decides") == KEEP:
            assert all({"doc_id", "p", "kept", "source"} <= set(grade) for grade in step["grades"])
            assert {grade["doc_id"] for grade in step["grades"]} <= set(state["retrieved"])
        elif "decides" in step:
            assert step["verdict"] in (True, False, None)
            assert 0 <= step.get("p", 0) <= 1
