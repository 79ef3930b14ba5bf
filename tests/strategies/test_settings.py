import pytest

from rag_arena import strategies
from rag_arena.compose import compose
from rag_arena.errors import ArenaError
from rag_arena.params import Params, validate
from tests.conftest import ROOT

VLLM = ["llm=vllm", "llm.endpoint.model=selfrag/selfrag_llama2_7b"]


def test_every_folder_with_a_graph_is_a_strategy():
    named = {"adaptive", "adaptive_self_rag", "corrective", "iterative", "no_retrieval", "self_corrective", "self_rag", "vanilla"}
    assert named <= set(strategies.known())
    assert "shared" not in strategies.known()


@pytest.mark.parametrize(("name", "group"), [("vanilla", "strategy"), ("self_corrective", "strategy"), ("no_retrieval", "floor")])
def test_a_strategy_has_its_own_settings(params: Params, name: str, group: str):
    assert strategies.settings(name, params).model_dump() == getattr(params, group)[name]


@pytest.mark.parametrize(("name", "nearest"), [("vanila", "vanilla"), ("no_retreival", "no_retrieval")])
def test_an_unknown_strategy_is_refused_with_the_nearest(params: Params, name: str, nearest: str):
    with pytest.raises(ArenaError, match=rf"^strategy '{name}' does not exist; did you mean {nearest}\?$"):
        strategies.settings(name, params)


def test_a_strategy_without_settings_is_refused(params: Params):
    without = params.model_copy(update={"strategy": {}})
    with pytest.raises(
        ArenaError,
        match=r"^params\.yaml: strategy 'vanilla' has no settings; `arena compose 'strategy=\[.*,vanilla\]'` gives it some$",
    ):
        strategies.settings("vanilla", without)


def test_an_unknown_key_of_a_strategy_is_refused_with_the_nearest(params: Params):
    values = params.model_dump()
    values["strategy"]["self_corrective"]["treshold"] = 0.5
    with pytest.raises(ArenaError) as caught:
        strategies.check(validate(values, "params.yaml"))
    assert str(caught.value) == "params.yaml: unknown key strategy.self_corrective.treshold; did you mean threshold?"


CHATS_ONLY = "the embedded model completes chats only; name a server of raw completions (llm=vllm)"
GRADED = "is calibrated on the reranker's scores, and the grader is llm; type a number"


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["strategy=[corrective]", "strategy.corrective.grader=llm"], f"corrective: upper {GRADED}"),
        (
            ["strategy=[corrective]", "strategy.corrective.grader=llm", "strategy.corrective.upper=0.5"],
            f"corrective: lower {GRADED}",
        ),
        (
            ["strategy=[self_rag]", "strategy.self_rag.variant=native"],
            f"self_rag.variant native: {CHATS_ONLY}, or choose variant prompted",
        ),
        (
            ["strategy=[self_rag]", "strategy.self_rag.variant=native", *VLLM, "llm.endpoint.top_logprobs=0"],
            "self_rag.variant native: it reads log-probabilities; raise llm.endpoint.top_logprobs, or choose variant prompted",
        ),
    ],
)
def test_settings_that_a_later_stage_could_not_use_are_refused_when_they_are_composed(overrides: list[str], told: str):
    with pytest.raises(ArenaError) as caught:
        compose(ROOT / "conf", overrides)
    assert str(caught.value).endswith(f": strategy.{told}")


def test_a_router_with_settings_that_adaptive_does_not_have_is_refused(params: Params):
    silver = params.silver.model_copy(update={"questions": 3, "settings": {"rooter": "trained"}})
    with pytest.raises(ArenaError, match=r"^params\.yaml: unknown key silver\.settings\.rooter; did you mean router\?$"):
        strategies.check(params.model_copy(update={"silver": silver}))


def test_a_native_variant_goes_with_a_server_of_raw_completions():
    text = compose(ROOT / "conf", ["strategy=[self_rag]", "strategy.self_rag.variant=native", *VLLM])
    assert "variant: native" in text


def test_the_schema_describes_every_strategys_settings():
    schema = strategies.full_model().model_json_schema()
    assert set(schema["$defs"]["Strategies"]["properties"]) == set(strategies.known())
