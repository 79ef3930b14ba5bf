import pytest

from rag_arena import strategies
from rag_arena.errors import ArenaError
from rag_arena.params import Params, validate


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


def test_the_schema_describes_every_strategys_settings():
    schema = strategies.full_model().model_json_schema()
    assert set(schema["$defs"]["Strategies"]["properties"]) == set(strategies.known())
