import copy
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from rag_arena import strategies
from rag_arena.errors import ArenaError
from rag_arena.params import NO_MODE, Dataset, Params, load, validate
from rag_arena.records import Cell

ABSENT = object()
NAN, INFINITE = float("nan"), float("inf")


def changed(params: Params, key: str, value: Any) -> dict[str, Any]:
    """The parameters as a mapping, one key set or, with ABSENT, taken out."""
    values = copy.deepcopy(params.model_dump())
    *above, last = key.split(".")
    section = values
    for part in above:
        if section[part] is None:
            section[part] = {}
        section = section[part]
    if value is ABSENT:
        del section[last]
    else:
        section[last] = value
    return values


def refusal(params: Params, key: str, value: Any) -> str:
    with pytest.raises(ArenaError) as caught:
        strategies.check(validate(changed(params, key, value), "params.yaml"))
    return str(caught.value)


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any, type[BaseModel] | None]]:
    """Every key below a model: its name, its field, and its model if it is a section."""
    for name, field in model.model_fields.items():
        options = get_args(field.annotation) or (field.annotation,)
        below = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)
        yield f"{prefix}{name}", field, below
        if below is not None:
            yield from fields(below, f"{prefix}{name}.")


SECTIONS = [key for key, _, below in fields(Params) if below is not None]
KINDS = get_args(get_args(Dataset)[0])
VALUES = {key: field for key, field, below in fields(Params) if below is None}


def test_what_the_default_experiment_composes_to_is_valid(params):
    assert validate(params.model_dump(), "params.yaml") == params


@pytest.mark.parametrize("section", SECTIONS)
def test_an_unknown_key_is_refused_in_every_section(params, section):
    assert refusal(params, f"{section}.qqqq", 1).startswith(f"params.yaml: unknown key {section}.qqqq; ")


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("samle", "sample"),
        ("sample.sed", "seed"),
        ("embedder.bm25.average_word", "average_words"),
        ("retrieval.hybrid_rerank.reranker.tua", "tau"),
        ("judge.llm.endpoint.modle", "model"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest_known_one(params, key, nearest):
    assert refusal(params, key, 1) == f"params.yaml: unknown key {key}; did you mean {nearest}?"


def test_an_unknown_key_near_to_none_is_answered_with_all_known_ones(params):
    assert refusal(params, "embedder.bm25.qqqq", 1) == "params.yaml: unknown key embedder.bm25.qqqq; known: k, b, average_words"


@pytest.mark.parametrize("key", ["store", "sample.seed", "retrieval.hybrid_rerank.reranker.tau", "llm.endpoint.model"])
def test_a_missing_key_is_named(params, key):
    assert refusal(params, key, ABSENT) == f"params.yaml: key {key} is missing"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sample.evaluation", "12"),
        ("sample.evaluation", 12.5),
        ("sample.evaluation", True),
        ("sample.evaluation", None),
        ("sample.evaluation", 0),
        ("sample.seed", -1),
        ("sample.calibration", -1),
        ("embedder.max_tokens", 7),
        ("embedder.max_tokens", 513),
        ("embedder.bm25.k", 0.0),
        ("embedder.bm25.b", 1.5),
        ("embedder.bm25.average_words", 0.0),
        ("store.backend", "cloud"),
        ("retrieval.dense", 5),
        ("retrieval.dense.candidates", 0),
        ("retrieval.hybrid.rrf_constant", 0),
        ("retrieval.hybrid.fusion", "theirs"),
        ("retrieval.hybrid_rerank.relevance_threshold", 1.01),
        ("retrieval.hybrid_rerank.relevance_threshold", NAN),
        ("retrieval.hybrid_rerank.reranker.temperature", 0.0),
        ("retrieval.hybrid_rerank.reranker.tau", NAN),
        ("strategy.vanilla.k", 0),
        ("strategy.self_corrective.threshold", -0.1),
        ("strategy.self_corrective.correction", "pray"),
        ("floor.no_retrieval.max_tokens", 0),
        ("llm.endpoint.temperature", NAN),
        ("llm.endpoint.threads", 0),
        ("llm.endpoint.max_tokens_key", "tokens"),
        ("llm.transport.max_concurrency", 0),
        ("llm.transport.deadline_s", 0.0),
        ("llm.transport.deadline_s", INFINITE),
        ("llm.transport.max_retries", -1),
        ("llm.price.input", -1.0),
        ("judge.metrics.questions", 0),
        ("judge.known_truth.questions", -1),
        ("grid.modes", "dense"),
        ("run.max_failed_share", 1.1),
        ("dataset.name", 3),
    ],
)
def test_a_value_of_the_wrong_type_or_out_of_bounds_is_refused_with_its_key(params, key, value):
    message = refusal(params, key, value)
    assert message.startswith(f"params.yaml: {key}: ")
    assert message.endswith(f"(got {value!r})")


def test_one_value_in_the_place_of_a_list_is_shown_as_a_list(params):
    assert (
        refusal(params, "grid.modes", "dense") == "params.yaml: grid.modes: must be a list, as grid.modes=[dense] (got 'dense')"
    )


def test_a_key_that_is_no_text_is_refused(params):
    values = params.model_dump()
    values["sample"][1] = 2
    with pytest.raises(ArenaError, match=r"params\.yaml: sample\.1: Keys should be strings"):
        validate(values, "params.yaml")


def test_a_whole_number_is_accepted_for_a_fraction(params):
    assert validate(changed(params, "llm.price.input", 3), "params.yaml").llm.price.input == 3.0


@pytest.mark.parametrize("key", ["llm.endpoint.temperature", "llm.endpoint.seed", "judge.llm.endpoint.temperature"])
def test_null_means_that_a_setting_is_not_sent(params, key):
    assert validate(changed(params, key, None), "params.yaml")


@pytest.mark.parametrize("url", ["", "api.example.org/v1", "ftp://api.example.org"])
def test_an_openai_endpoint_without_an_http_url_is_refused(params, url):
    endpoint = {**params.llm.endpoint.model_dump(), "kind": "openai", "base_url": url}
    message = refusal(params, "llm.endpoint", endpoint)
    assert message.startswith("params.yaml: llm.endpoint: base_url must start with http:// or https:// when kind is openai")


def test_an_openai_endpoint_may_hold_no_password_and_the_refusal_does_not_show_it(params):
    endpoint = {**params.llm.endpoint.model_dump(), "kind": "openai", "base_url": "https://me:word@api.example.org/v1"}
    message = refusal(params, "llm.endpoint", endpoint)
    assert message.startswith("params.yaml: llm.endpoint: base_url must not hold a password, ")
    assert "word@" not in message


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "https://api.example.org/v1"])
def test_an_openai_endpoint_with_an_http_url_is_accepted(params, url):
    endpoint = {**params.llm.endpoint.model_dump(), "kind": "openai", "base_url": url}
    assert validate(changed(params, "llm.endpoint", endpoint), "params.yaml").llm.endpoint.base_url == url


@pytest.mark.parametrize("url", ["", "localhost:6333", "ftp://localhost", "http://me:secret@localhost:6333"])
def test_a_server_of_vectors_needs_an_http_url_without_a_password(params, url):
    message = refusal(params, "store", {"backend": "server", "url": url})
    assert message.startswith("params.yaml: store: url must be as http://localhost:6333, without a password")
    assert "secret" not in message


@pytest.mark.parametrize("setting", [{"url": "http://localhost:6333"}, {"api_key_env": "QDRANT_API_KEY"}, {"exact": False}])
def test_a_store_in_this_process_takes_no_setting_of_a_server(params, setting):
    message = refusal(params, "store", {"backend": "edge", **setting})
    assert message == "params.yaml: store: url, api_key_env and exact are a server's; edge takes none of them"


def test_an_experiment_must_have_a_name(params):
    assert refusal(params, "experiment", "") == "params.yaml: experiment: must not be empty (got '')"


@pytest.mark.parametrize(
    ("key", "names", "message"),
    [
        ("grid.modes", ["dnese"], "'dnese' has no settings; did you mean dense?"),
        ("grid.strategies", ["vanila"], "'vanila' has no settings; did you mean vanilla?"),
        ("grid.floor", ["vanilla"], "'vanilla' has no settings; known: no_retrieval"),
    ],
)
def test_the_grid_refuses_a_name_without_settings(params, key, names, message):
    assert refusal(params, key, names) == f"params.yaml: {key}: {message}"


@pytest.mark.parametrize("key", ["grid.modes", "grid.strategies", "grid.floor"])
def test_the_grid_refuses_a_name_that_occurs_twice(params, key):
    names = getattr(params.grid, key.removeprefix("grid."))
    assert refusal(params, key, [*names, names[0]]) == f"params.yaml: {key}: a name occurs twice"


@pytest.mark.parametrize("section", ["retrieval.dense", "strategy.vanilla", "floor.no_retrieval"])
def test_the_grid_refuses_a_name_whose_settings_are_gone(params, section):
    assert f"{section.split('.')[1]!r} has no settings" in refusal(params, section, ABSENT)


@pytest.mark.parametrize(("strategies", "modes"), [([], ["dense"]), ([], [])])
def test_a_grid_without_cells_is_refused(params, strategies, modes):
    message = refusal(params, "grid", {"strategies": strategies, "modes": modes, "floor": []})
    assert message == "params.yaml: grid: no cell to run; name at least one strategy and one mode, or a floor"


def test_strategies_without_a_mode_to_run_under_are_refused(params):
    message = refusal(params, "grid", {"strategies": ["vanilla"], "modes": [], "floor": ["no_retrieval"]})
    assert message == "params.yaml: grid.modes: empty, but vanilla retrieves; name a mode, e.g. dense"


def test_a_focus_that_is_no_cell_is_refused_with_the_cells(params):
    values = changed(params, "grid", {"strategies": ["vanilla"], "modes": ["dense", "sparse"], "floor": ["no_retrieval"]})
    with pytest.raises(ArenaError) as caught:
        validate(values | {"report": {"focus": "vanilla-hybrid"}}, "params.yaml")
    choices = "no_retrieval-none, vanilla-dense, vanilla-sparse"
    assert str(caught.value) == f"params.yaml: report.focus: 'vanilla-hybrid' is no cell of the grid; choose one of {choices}"


def test_cells_are_the_floor_and_then_every_strategy_under_every_mode(params):
    grid = {"strategies": ["self_corrective", "vanilla"], "modes": ["sparse", "hybrid"], "floor": ["no_retrieval"]}
    assert validate(changed(params, "grid", grid), "params.yaml").cells == [
        Cell("no_retrieval", NO_MODE),
        Cell("self_corrective", "sparse"),
        Cell("self_corrective", "hybrid"),
        Cell("vanilla", "sparse"),
        Cell("vanilla", "hybrid"),
    ]


@pytest.mark.parametrize("values", [None, [], "text", 3])
def test_parameters_that_are_no_mapping_are_refused(values):
    with pytest.raises(ArenaError, match=r"^params\.yaml: not a mapping of parameters; make it anew with `arena compose`$"):
        validate(values, "params.yaml")


@pytest.mark.parametrize("name", ["dense", "sparse", "hybrid", "hybrid_rerank"])
def test_a_mode_has_its_own_settings(params, name):
    assert params.retrieval.mode(name) is getattr(params.retrieval, name)


def test_an_unknown_mode_is_refused_with_the_nearest(params):
    with pytest.raises(ArenaError, match=r"^retrieval mode 'hybird' does not exist; did you mean hybrid\?$"):
        params.retrieval.mode("hybird")


def test_an_attribute_that_is_no_mode_is_refused(params):
    with pytest.raises(ArenaError, match=r"^retrieval mode 'model_fields' does not exist"):
        params.retrieval.mode("model_fields")


def test_a_mode_without_settings_is_refused(params):
    advice = r"`arena compose 'retrieval=\[dense,sparse,hybrid,hybrid_rerank\]'` sets it"
    with pytest.raises(ArenaError, match=rf"^params\.yaml: retrieval\.sparse is not set; {advice}$"):
        params.retrieval.model_copy(update={"sparse": None}).mode("sparse")


def test_a_file_is_read_and_checked(params, tmp_path):
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params.model_dump()), encoding="utf-8")
    assert load(tmp_path / "params.yaml") == params


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ArenaError, match=r"/params\.yaml: missing; make it with `arena compose` in the project's folder$"):
        load(tmp_path / "params.yaml")


@pytest.mark.parametrize("content", [b"a: [1,\nb: 2", b"a: b: c", b"\xff\xfe", b"a:\n\t- 1"])
def test_a_file_that_is_not_yaml_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(ArenaError, match=r"/params\.yaml: not YAML \(.+\)") as caught:
        load(tmp_path / "params.yaml")
    assert "\n" not in str(caught.value)


def test_a_file_that_breaks_the_schema_is_refused_by_its_name(params, tmp_path):
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(changed(params, "samle", 1)), encoding="utf-8")
    with pytest.raises(ArenaError, match=r"/params\.yaml: unknown key samle; did you mean sample\?$"):
        load(tmp_path / "params.yaml")


@pytest.mark.parametrize("key", VALUES)
def test_every_value_is_described(key):
    assert VALUES[key].description


@pytest.mark.parametrize(
    ("written", "ours", "theirs"),
    [
        ("1e-2", "'1e-2'", "0.01"),
        ("010", "8", "10"),
        ("yes", "True", "'yes'"),
        ("1:30", "90", "'1:30'"),
        ("0o14", "'0o14'", "12"),
    ],
)
def test_what_the_runners_would_read_differently_is_refused(params, tmp_path, written, ours, theirs):
    text = yaml.safe_dump(params.model_dump())
    old = f"threshold: {params.strategy['self_corrective']['threshold']}"
    assert text.count(old) == 1
    (tmp_path / "params.yaml").write_text(text.replace(old, f"threshold: {written}"), encoding="utf-8")
    with pytest.raises(ArenaError) as caught:
        load(tmp_path / "params.yaml")
    reading = f"strategy.self_corrective.threshold is {ours} to Snakemake and {theirs} to DVC"
    assert str(caught.value) == f"{tmp_path / 'params.yaml'}: {reading}; write the number in full or quote it"


def test_a_key_written_twice_is_refused(params, tmp_path):
    text = yaml.safe_dump(params.model_dump()) + "experiment: again\n"
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ArenaError, match=r"not YAML .*experiment"):
        load(tmp_path / "params.yaml")


def test_labels_for_a_router_that_no_strategy_has_are_refused(params: Params):
    message = refusal(params, "silver", {**params.silver.model_dump(), "questions": 2, "settings": {}})
    assert message.startswith("params.yaml: silver: questions are to be labelled and no strategy has a router: choose adaptive")


def test_an_unknown_kind_of_dataset_is_refused_with_the_nearest(params):
    dataset = {**params.dataset.model_dump(), "kind": "hotpot"}
    assert refusal(params, "dataset", dataset) == "params.yaml: dataset.kind: 'hotpot' does not exist; did you mean hotpotqa?"


def test_an_unknown_kind_of_dataset_near_to_none_is_refused_with_all_known_ones(params):
    message = refusal(params, "dataset", {**params.dataset.model_dump(), "kind": "qqqq"})
    assert message.startswith("params.yaml: dataset.kind: 'qqqq' does not exist; known: ragrouter, ")


def test_a_dataset_without_a_kind_is_refused(params):
    assert refusal(params, "dataset.kind", ABSENT) == "params.yaml: key dataset.kind is missing"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_unknown_key_of_a_kind_of_dataset_is_answered_with_the_nearest(params, kind):
    dataset = {**params.dataset.model_dump(), "kind": get_args(kind.model_fields["kind"].annotation)[0], "license": "none"}
    assert refusal(params, "dataset", dataset) == "params.yaml: unknown key dataset.license; did you mean licence?"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_value_of_a_kind_of_dataset_is_described(kind):
    assert [name for name, field in kind.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    ("chunking", "message"),
    [
        ({"characters": 0, "overlap": 0}, "dataset.chunking.characters: Input should be greater than or equal to 1 (got 0)"),
        ({"characters": 9, "overlap": 9}, "dataset.chunking: overlap must be less than characters"),
        ({"characters": 9, "overlaps": 1}, "unknown key dataset.chunking.overlaps; did you mean overlap?"),
        ({"characters": 9}, "key dataset.chunking.overlap is missing"),
    ],
)
def test_chunking_must_move_on_through_a_text(params, chunking, message):
    assert refusal(params, "dataset.chunking", chunking) == f"params.yaml: {message}"


# Embedders and rerankers of every kind

SERVED = {"base_url": "http://localhost:8000/v1", "model": "m", "api_key_env": "", "max_characters": 10, "batch_size": 2}
CHECKPOINT = {"model": "m", "max_tokens": 8, "batch_size": 2, "device": "cpu", "use_fp16": False, "threads": 1}
BM25 = {"k": 1.2, "b": 0.75, "average_words": 256.0}
PREFIXES = {"query_prefix": "", "document_prefix": ""}
EMBEDDERS = {
    "minilm": {"max_tokens": 8, "bm25": BM25},
    "flag": CHECKPOINT,
    "http": {**SERVED, **PREFIXES, "dimensions": 8, "send_dimensions": False, "bm25": BM25},
}
SIGMOID = {"tau": 0.0, "temperature": 1.0}
RERANKERS = {
    "maxsim": SIGMOID,
    "cross_encoder": {**SIGMOID, **CHECKPOINT},
    "http": {**SIGMOID, **SERVED, "documents_key": "texts", "scores": "logits"},
}
KINDS = [("embedder", kind) for kind in EMBEDDERS] + [("reranker", kind) for kind in RERANKERS]


def retrieved_by(params: Params, embedder: str = "minilm", reranker: str = "cross_encoder", **changes: Any) -> dict[str, Any]:
    """Parameters with an embedder and a reranker of these kinds; changes are of the section that `section` names."""
    values = params.model_dump()
    section = changes.pop("section", "")
    for name, kind, kinds in (("embedder", embedder, EMBEDDERS), ("reranker", reranker, RERANKERS)):
        values[name] = {"kind": kind, **kinds[kind], **(changes if name == section else {})}
    return values


def refused(values: dict[str, Any]) -> str:
    with pytest.raises(ArenaError) as caught:
        validate(values, "params.yaml")
    return str(caught.value)


@pytest.mark.parametrize("embedder", EMBEDDERS)
@pytest.mark.parametrize("reranker", RERANKERS)
def test_every_reranker_goes_with_every_embedder_but_late_interaction_with_one_over_http(params, embedder, reranker):
    values = retrieved_by(params, embedder, reranker)
    if (embedder, reranker) == ("http", "maxsim"):
        assert refused(values) == (
            "params.yaml: reranker.kind: maxsim compares token vectors, which an embedder over HTTP does not give; "
            "choose reranker=http or reranker=bge_reranker"
        )
    else:
        assert (validate(values, "params.yaml").embedder.kind, values["reranker"]["kind"]) == (embedder, reranker)


@pytest.mark.parametrize(("section", "kind"), KINDS)
def test_an_unknown_key_of_every_kind_is_answered_with_the_nearest(params, section, kind):
    values = retrieved_by(params, **{section: kind}, section=section, modle=1)
    if (section, kind) == ("reranker", "maxsim"):
        assert refused(values) == "params.yaml: unknown key reranker.modle; known: tau, temperature, kind"
    else:
        nearest = "max_tokens" if kind == "minilm" else "model"
        assert refused(values).startswith(f"params.yaml: unknown key {section}.modle; ")
        assert nearest in refused(values)


@pytest.mark.parametrize(("section", "kind"), KINDS)
def test_every_value_of_every_kind_is_described(section, kind):
    union = Params.model_fields[section].annotation
    [model] = [option for option in get_args(union) if kind in get_args(option.model_fields["kind"].annotation)]
    assert all(field.description for name, field in model.model_fields.items() if name != "bm25")


@pytest.mark.parametrize("section", ["embedder", "reranker"])
def test_a_kind_that_does_not_exist_is_answered_with_those_that_do(params, section):
    kinds = ", ".join(EMBEDDERS if section == "embedder" else RERANKERS)
    values = params.model_dump() | {section: {"kind": "qqqq"}}
    assert refused(values) == f"params.yaml: {section}.kind: 'qqqq' does not exist; known: {kinds}"


@pytest.mark.parametrize(
    ("section", "kind", "changes", "message"),
    [
        ("embedder", "flag", {"use_fp16": True}, "embedder: use_fp16 needs a GPU; set it to false, or device to cuda:0"),
        ("reranker", "cross_encoder", {"device": "gpu"}, "reranker.device: String should match pattern "),
        ("embedder", "flag", {"max_tokens": 7}, "embedder.max_tokens: Input should be greater than or equal to 8 (got 7)"),
        ("embedder", "http", {"base_url": "localhost:8000"}, "embedder: base_url must start with http:// or https://"),
        ("embedder", "http", {"dimensions": 0}, "embedder.dimensions: Input should be greater than or equal to 1 (got 0)"),
        (
            "reranker",
            "http",
            {"base_url": "https://me:word@example.org"},
            "reranker: base_url must not hold a password, ",
        ),
        (
            "reranker",
            "http",
            {"documents_key": "passages"},
            "reranker.documents_key: Input should be 'documents' or 'texts' ",
        ),
        (
            "reranker",
            "http",
            {"scores": "percent"},
            "reranker.scores: Input should be 'logits' or 'probabilities' ",
        ),
        ("reranker", "http", {"temperature": 0.0}, "reranker.temperature: Input should be greater than 0 (got 0.0)"),
    ],
)
def test_a_setting_of_a_kind_that_makes_no_sense_is_refused(params, section, kind, changes, message):
    said = refused(retrieved_by(params, **{section: kind}, section=section, **changes))
    assert said.startswith(f"params.yaml: {message}")
    assert "word@" not in said


def test_a_gpu_may_compute_in_half_precision(params):
    values = retrieved_by(params, "flag", section="embedder", use_fp16=True, device="cuda:1")
    assert validate(values, "params.yaml").embedder.device == "cuda:1"


@pytest.mark.parametrize("given", ["sk-proj-5d41402abc4b2a76", "my key", "1KEY"])
def test_a_key_in_the_place_of_its_variables_name_is_refused_and_not_shown(params, given):
    values = params.model_dump(mode="json")
    values["llm"]["endpoint"]["api_key_env"] = given
    with pytest.raises(ArenaError) as refused:
        validate(values, "test")
    said = "must be the name of an environment variable; the key itself belongs in that variable alone"
    assert str(refused.value) == f"test: llm.endpoint.api_key_env: {said}"
