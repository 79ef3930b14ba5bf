import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from rag_arena.cli import app
from rag_arena.compose import compose, differences, drift
from rag_arena.errors import ArenaError
from rag_arena.params import load

CONF = Path(__file__).parent.parent / "conf"
OPTIONS = sorted(CONF.glob("*/*.yaml"))
CHOICES = {
    "retrieval": "retrieval=[{0}]",
    "strategy": "strategy=[{1}]",
    "llm": "llm@small_llm={0}",
    "embedder": "embedder={0} reranker=bge_reranker",  # it goes with any embedder
}
GIVEN = {"base_url": "http://given", "dimensions": 3}  # of keys that take no other word
ALONG = {"embedder/http": ["reranker=bge_reranker"]}  # an option that does not go with the defaults of another group
PLACES = {"llm": "small_llm", "_global_": ""}


def leaves(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        elif f"{prefix}{key}" != "defaults":
            yield f"{prefix}{key}", value


def chosen(path: Path, choice: str, place: str) -> tuple[list[str], dict[str, Any]]:
    """Overrides that pick an option and give its mandatory values, and the plain values that it must lead to."""
    values = {".".join(filter(None, (place, key))): value for key, value in inherited(path).items()}
    given = {key: GIVEN.get(key.rpartition(".")[2], "given") for key, value in values.items() if value == "???"}
    overrides = [*choice.split(), *(f"{key}={value}" for key, value in given.items())]
    return overrides, {key: value for key, value in (values | given).items() if "${" not in str(value)}


def inherited(path: Path) -> dict[str, Any]:
    """An option's values over those of the options that it starts from."""
    own = yaml.safe_load(path.read_text(encoding="utf-8"))
    bases = [base for base in own.get("defaults", []) if isinstance(base, str) and base != "_self_"]
    return {key: value for base in bases for key, value in inherited(path.with_stem(base)).items()} | dict(leaves(own))


def option(path: Path) -> tuple[list[str], dict[str, Any]]:
    group, name = path.parent.name, path.stem
    package = re.search(r"^# @package (\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    place = package[1] if package else group
    together = ",".join(dict.fromkeys(("vanilla", name)))
    return chosen(path, CHOICES.get(group, f"{group}={{0}}").format(name, together), PLACES.get(place, place))


def assert_in_place(wanted: dict[str, Any], params: dict[str, Any]) -> None:
    found = dict(leaves(params))
    assert {key: found.get(key) for key in wanted} == wanted


def composed(*overrides: str) -> dict[str, Any]:
    return yaml.safe_load(compose(CONF, overrides))


def refusal(*overrides: str) -> str:
    with pytest.raises(ArenaError) as caught:
        compose(CONF, overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("path", OPTIONS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_option_composes_and_puts_its_values_in_place(path):
    overrides, wanted = option(path)
    assert_in_place(wanted, composed(*overrides, *ALONG.get(f"{path.parent.name}/{path.stem}", [])))


@pytest.mark.parametrize(
    "path", [path for path in OPTIONS if path.parent.name == "llm" and path.stem != "same"], ids=lambda p: p.stem
)
@pytest.mark.parametrize("place", ["llm", "judge.llm"])
def test_every_language_model_can_answer_and_judge(path, place):
    overrides, wanted = chosen(path, f"{place if place == 'llm' else f'llm@{place}'}={path.stem}", place)
    assert_in_place(wanted, composed(*overrides))


@pytest.mark.parametrize("name", sorted(path.stem for path in CONF.glob("experiment/*.yaml")))
def test_every_experiment_names_itself(name):
    assert composed(f"experiment={name}")["experiment"] == name


@pytest.mark.parametrize(
    ("choice", "key"),
    [
        ("llm=openai", "llm.endpoint.model"),
        ("llm@judge.llm=openai", "judge.llm.endpoint.model"),
        ("dataset=folder", "dataset.path"),
    ],
)
def test_a_mandatory_value_that_is_not_given_is_refused_by_its_key(choice, key):
    assert key in refusal(choice)


def test_every_value_that_must_be_given_is_named_once_and_none_that_is_taken_from_another_section():
    keys = ["embedder.base_url", "embedder.model", "embedder.dimensions", "reranker.base_url", "reranker.model"]
    added = " ".join(f"{key}=..." for key in keys)
    assert refusal("embedder=http", "reranker=http") == f"{CONF}: {', '.join(keys)} must be given: add {added} to the command"


def test_composing_twice_gives_the_same_text():
    assert compose(CONF, []) == compose(CONF, [])


def test_an_override_reaches_the_parameters():
    assert composed("strategy=[vanilla,self_corrective]", "strategy.vanilla.k=5")["strategy"]["vanilla"]["k"] == 5


def test_a_small_model_of_its_own_leaves_the_answering_one_alone():
    params = composed("llm@small_llm=openai", "small_llm.endpoint.model=tiny")
    assert (params["llm"]["endpoint"]["kind"], params["small_llm"]["endpoint"]["model"]) == ("embedded", "tiny")


def test_the_small_model_is_by_default_the_one_that_answers():
    params = composed("llm=openai", "llm.endpoint.model=large")
    assert params["small_llm"] == params["llm"]


def test_a_strategy_without_vanilla_has_values_of_its_own():
    assert composed("strategy=[self_corrective]")["strategy"]["self_corrective"]["k"] == 3


def test_k_is_shared_between_vanilla_and_self_corrective():
    assert composed("strategy=[vanilla,self_corrective]", "strategy.vanilla.k=5")["strategy"]["self_corrective"]["k"] == 5


def test_the_grid_is_what_is_chosen():
    grid = composed("retrieval=[sparse,dense]", "strategy=[vanilla]", "report.focus=vanilla-dense")["grid"]
    assert grid == {"strategies": ["vanilla"], "modes": ["sparse", "dense"], "floor": []}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("experiment=nonsense", f"{CONF}/experiment: no option 'nonsense'; known: demo, "),
        ("retrieval=[dense,hybird]", f"{CONF}/retrieval: no option 'hybird'; did you mean hybrid?"),
        ("strategy=[vanila]", f"{CONF}/strategy: no option 'vanila'; did you mean vanilla?"),
        ("llm@judge.llm=opnai", f"{CONF}/llm: no option 'opnai'; did you mean openai?"),
        ("llm@judg.llm=openai", f"{CONF}: Could not override 'llm@judg.llm'. Did you mean to override "),
        ("datset=demo", f"{CONF}: unknown key datset; did you mean dataset?"),
        ("dataset.nmae=x", f"{CONF}: unknown key dataset.nmae; did you mean name?"),
        (
            "strategy.self_rag.treshold=0.6",
            f"{CONF}: unknown key strategy.self_rag.treshold; did you mean threshold?",
        ),
        ("llm.endpoint.modell=x llm=openai", f"{CONF}: unknown key llm.endpoint.modell; did you mean model?"),
        ("small_llm.endpoint.modell=x", f"{CONF}: unknown key small_llm.endpoint.modell; did you mean model?"),
        ("sample.seed.first=1", f"{CONF}: unknown key sample.seed.first"),
        ("sample={sed: 1}", f"{CONF}: unknown key sample, or one below it"),
        ("samle.seed=1 strategy=vanila", f"{CONF}/strategy: no option 'vanila'; did you mean vanilla?"),
        ("sample.seed=1,2", f"{CONF}: sample.seed=1,2: a list is written key=[a,b], a text with a comma key=\"'a,b'\" "),
        (
            "strategy.vanilla.k=${strategy.self_rag.k}",
            f"{CONF} with strategy.vanilla.k=$",
        ),
        (
            "retrieval=[] strategy=[no_retrieval,vanilla]",
            f"{CONF} with retrieval=[] strategy=[no_retrieval,vanilla]: grid.",
        ),
        ("strategy=[]", f"{CONF} with strategy=[]: grid: no cell to run; name at least one strategy and one mode, or a floor"),
        ("==", f"{CONF}: '==' cannot be read; an override is written key=value"),
        ("smoke", f"{CONF}: 'smoke' cannot be read; an override is written key=value"),
        (
            "strategy.iterative.k=2",
            f"{CONF}: strategy.iterative.k belongs to a strategy that is not chosen; add strategy=[vanilla,self_rag,",
        ),
        ("strategy.iterativ.k=2", f"{CONF}: unknown key strategy.iterativ.k; did you mean iterative?"),
        ("llm=same", f"{CONF} with llm=same: a value is taken from itself; give it one of its own"),
        ("+samle=1", f"{CONF} with +samle=1: unknown key samle; did you mean sample?"),
        ("dataset=demo;", f"{CONF}/dataset: no option 'demo;'; did you mean demo?"),
        ("retrieval=dense;", f"{CONF}/retrieval: no option 'dense;'; did you mean dense?"),
        ("sample.seed=1;", f"{CONF} with sample.seed='1;': sample.seed: Input should be a valid integer (got '1;')"),
        ("dataset.metadata=[größe]", f"{CONF}: 'dataset.metadata=[größe]' cannot be read; quote what is no plain word, "),
        ("dataset.name=[1].csv", f"{CONF}: 'dataset.name=[1].csv' cannot be read; quote what is no plain word, "),
        ("dataset={name: é}", f"{CONF}: 'dataset={{name: é}}' cannot be read; quote what is no plain word, "),
        ("sample.seed=x", f"{CONF} with sample.seed=x: sample.seed: Input should be a valid integer (got 'x')"),
        ("~store", f"{CONF} with ~store: key store is missing"),
        (
            "report.focus=vanilla-densest",
            f"{CONF} with report.focus=vanilla-densest: report.focus: 'vanilla-densest' is no cell of the grid",
        ),
    ],
)
def test_an_override_that_leads_nowhere_is_refused(override, message):
    said = refusal(*re.split(r" (?=[a-z_.@]+=)", override))
    assert said.startswith(message)
    assert "search path" not in said
    assert "append" not in said


@pytest.mark.parametrize(
    "text",
    [
        ";",
        "|",
        "brück.csv",
        "it's.csv",
        'it\'s "ours".csv',
        "br{ace}s.csv",
        "a[1].csv",
        "(1).csv",
        "a#b=c",
        "日本",
        "'half",
        "ü\\",
        "ü\\'\\",
    ],
)
def test_a_text_that_hydra_cannot_read_is_taken_as_it_stands(text):
    assert composed(f"dataset.name={text}")["dataset"]["name"] == text


@pytest.mark.parametrize(
    ("override", "value"), [("name='a,b'", "a,b"), ("name=\"'[a].csv'\"", "'[a].csv'"), ("name='[a].csv'", "[a].csv")]
)
def test_a_text_in_quotes_is_one_text(override, value):
    assert composed(f"dataset.{override}")["dataset"]["name"] == value


def test_a_folder_without_configuration_is_refused(tmp_path):
    with pytest.raises(ArenaError, match=r"/conf/config\.yaml: missing; run from the project's folder$"):
        compose(tmp_path / "conf", [])


def test_a_configuration_that_breaks_the_schema_is_refused(tmp_path):
    (tmp_path / "config.yaml").write_text("samle: 1\n")
    with pytest.raises(ArenaError, match="with no overrides: "):
        compose(tmp_path, [])


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("a: 1", "a: 1", []),
        ("a: 1\nb: 2", "b: 2\na: 1", []),
        ("a: 1", "a: 2", ["a: 1 -> 2"]),
        ("a: {b: {c: x}}", "a: {b: {c: y}}", ["a.b.c: 'x' -> 'y'"]),
        ("a: 1", "b: 1", ["a: 1 -> (absent)", "b: (absent) -> 1"]),
        ("a: [1, 2]", "a: [2, 1]", ["a: [1, 2] -> [2, 1]"]),
        ("a: null", "a: 0", ["a: None -> 0"]),
        ("a: null", "b: null", ["a: None -> (absent)", "b: (absent) -> None"]),
        ("a: 1", "a: '1'", ["a: 1 -> '1'"]),
        ("{}", "{}", []),
        ("a: {b: {c: 1, d: 2}}", "a: {e: {c: 1}}", ["a.b: {…} -> (absent)", "a.e: (absent) -> {'c': 1}"]),
        ("a: null", "a: {b: 1}", ["a: None -> {'b': 1}"]),
        ("", "", []),
        ("", "a: 1", ["a: (absent) -> 1"]),
        ("a: 1", "", ["a: 1 -> (absent)"]),
    ],
)
def test_differences_are_one_line_per_key(old, new, lines):
    assert differences(old, new) == lines


def test_differences_stand_in_the_order_of_the_files():
    assert differences("z: 1\na: 1", "a: 2\nz: 2\nb: 2") == ["z: 1 -> 2", "a: 1 -> 2", "b: (absent) -> 2"]


@pytest.mark.parametrize("experiment", ["demo", "smoke"])
def test_parameters_as_composed_have_not_drifted(tmp_path, experiment):
    (tmp_path / "params.yaml").write_text(compose(CONF, [f"experiment={experiment}"]))
    assert drift(CONF, tmp_path / "params.yaml") == []


def test_drift_names_the_keys_that_differ_from_the_experiment_in_force(tmp_path):
    text = compose(CONF, ["experiment=smoke", "sample.seed=1", "strategy.vanilla.k=9"])
    (tmp_path / "params.yaml").write_text(text)
    smoke = composed("experiment=smoke")
    assert drift(CONF, tmp_path / "params.yaml") == [
        f"strategy.vanilla.k: {smoke['strategy']['vanilla']['k']} -> 9",
        f"strategy.self_corrective.k: {smoke['strategy']['self_corrective']['k']} -> 9",
        f"sample.seed: {smoke['sample']['seed']} -> 1",
        f"calibration.k: {smoke['strategy']['vanilla']['k']} -> 9",
    ]


def test_drift_refuses_an_experiment_that_does_not_exist(tmp_path):
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(composed() | {"experiment": "nope"}))
    with pytest.raises(ArenaError, match="/experiment: no option 'nope'; known: demo, "):
        drift(CONF, tmp_path / "params.yaml")


def test_drift_refuses_parameters_that_break_the_schema(tmp_path):
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(composed() | {"samle": 1}))
    with pytest.raises(ArenaError, match=r"/params\.yaml: unknown key samle; did you mean sample\?"):
        drift(CONF, tmp_path / "params.yaml")


def test_drift_refuses_missing_parameters(tmp_path):
    with pytest.raises(ArenaError, match=r"/params\.yaml: missing; make it with `arena compose`"):
        drift(CONF, tmp_path / "params.yaml")


@pytest.mark.parametrize("content", [None, b"", b"a: [1", b"\xff\xfe", b"- 1\n", b"samle: 1\n"])
def test_the_compose_command_makes_unreadable_parameters_anew(tmp_path, monkeypatch, content):
    for name in ("conf", "data"):
        (tmp_path / name).symlink_to(CONF.parent / name)
    if content is not None:
        (tmp_path / "params.yaml").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["compose"])
    assert result.exit_code == 0, result.exception
    assert load(tmp_path / "params.yaml").experiment == "demo"
