"""bge-m3 and bge-reranker-v2-m3 through FlagEmbedding, on tiny random models in their layout. All that imports torch is here."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_arena import artifacts, embedders, layout, rerankers
from rag_arena.embedders.checkpoints import Folder
from rag_arena.embedders.flag import Flag
from rag_arena.errors import ArenaError
from rag_arena.params import CrossEncoderReranker, FlagEmbedder, Store
from rag_arena.rerankers.cross_encoder import CrossEncoder
from rag_arena.retrieval.index import join
from rag_arena.retrieval.store import open_store
from rag_arena.stages.index import index
from tests import tinymodels
from tests.project import CORPUS, OVERRIDES, QUESTIONS

pytest.importorskip("FlagEmbedding", reason="`make setup-flag` installs it")

QUERY = "where does the rhine begin"
TEXTS = ["the rhine begins in the alps", "the danube begins in the forest", "cheese is made of milk"]
SETTINGS: dict[str, Any] = {"max_tokens": 32, "batch_size": 2, "device": "cpu", "use_fp16": False, "threads": 1}


@pytest.fixture(scope="module")
def embedding_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tinymodels.embedder(tmp_path_factory.mktemp("embedder"))


@pytest.fixture(scope="module")
def reranking_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tinymodels.reranker(tmp_path_factory.mktemp("reranker"))


def flag_of(model: Path | str, **changes: Any) -> Flag:
    return Flag(FlagEmbedder(kind="flag", model=str(model), **SETTINGS | changes))


def cross_encoder_of(model: Path, **changes: Any) -> CrossEncoder:
    kind: Any = "cross_encoder"
    return CrossEncoder(CrossEncoderReranker(kind=kind, model=str(model), tau=0.0, temperature=1.0, **SETTINGS | changes))


@pytest.fixture(scope="module")
def embedder(embedding_model: Path) -> Flag:
    return flag_of(embedding_model)


@pytest.fixture(scope="module")
def reranker(reranking_model: Path) -> CrossEncoder:
    return cross_encoder_of(reranking_model)


@pytest.fixture
def copied(embedding_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(embedding_model, tmp_path / "copy"))


@pytest.fixture
def copied_reranker(reranking_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(reranking_model, tmp_path / "copy"))


def by_hand(model: Path, text: str) -> tuple[list[int], Any]:
    """Token ids and last hidden states, by transformers alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    encoded = AutoTokenizer.from_pretrained(model)(text, return_tensors="pt")
    with torch.no_grad():
        return encoded["input_ids"][0].tolist(), AutoModel.from_pretrained(model).eval()(**encoded).last_hidden_state[0]


def linear(model: Path, name: str, hidden: Any) -> Any:
    import torch

    layer = torch.load(model / f"{name}_linear.pt", weights_only=True)
    return hidden @ layer["weight"].T + layer["bias"]


# What is computed


def test_the_dense_vector_is_the_first_tokens_hidden_state_at_length_one(embedder, embedding_model):
    _, hidden = by_hand(embedding_model, QUERY)
    vector = embedder.dense(QUERY)
    assert (vector.shape, vector.dtype) == ((32,), np.float32)
    assert vector == pytest.approx((hidden[0] / hidden[0].norm()).numpy(), abs=1e-5)


def test_a_lexical_weight_is_the_largest_positive_output_of_the_linear_layer_for_a_token(embedder, embedding_model):
    text = "the rhine the alps the"
    ids, hidden = by_hand(embedding_model, text)
    wanted: dict[int, float] = {}
    for token, weight in zip(ids, linear(embedding_model, "sparse", hidden).flatten().tolist(), strict=True):
        if token not in (0, 1, 2, 3) and weight > 0:  # <s>, <pad>, </s>, <unk>
            wanted[token] = max(weight, wanted.get(token, 0))
    found = embedder.sparse_query(text)
    assert len(wanted) < len(ids) - 2
    assert found.indices == sorted(wanted)
    assert dict(zip(found.indices, found.values, strict=True)) == pytest.approx(wanted, abs=1e-5)


def test_token_vectors_are_the_models_own_at_length_one_without_the_first(embedder, embedding_model):
    _, hidden = by_hand(embedding_model, QUERY)
    wanted = linear(embedding_model, "colbert", hidden[1:])
    assert embedder.tokens(QUERY) == pytest.approx((wanted / wanted.norm(dim=1, keepdim=True)).numpy(), abs=1e-5)


def test_a_score_is_the_models_logit_of_question_and_text(reranker, reranking_model):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    encoded = AutoTokenizer.from_pretrained(reranking_model)([[QUERY, text] for text in TEXTS], padding=True, return_tensors="pt")
    with torch.no_grad():
        wanted = AutoModelForSequenceClassification.from_pretrained(reranking_model).eval()(**encoded).logits.flatten()
    assert reranker.scores(QUERY, TEXTS) == pytest.approx(wanted.tolist(), abs=1e-5)


def test_the_sigmoid_of_tau_0_and_temperature_1_is_the_models_own():
    params = CrossEncoderReranker(kind="cross_encoder", model="m", tau=0.0, temperature=1.0, **SETTINGS)
    assert rerankers.probability(0.8, params) == pytest.approx(1 / (1 + np.exp(-0.8)))


# Batches, lengths, order


def test_documents_come_back_in_their_order_whatever_the_batches(embedder):
    texts = [*TEXTS, "", "river " * 100, TEXTS[0]]
    [found] = embedder.documents([texts])
    for text, each in zip(texts, found, strict=True):
        assert each.dense == pytest.approx(embedder.dense(text), abs=1e-5)
        assert each.sparse.indices == embedder.sparse_query(text).indices


def test_a_group_embedded_again_has_the_same_bytes(embedding_model):
    first, second = (next(flag_of(embedding_model).documents([TEXTS])) for _ in range(2))
    assert [e.dense.tobytes() for e in first] == [e.dense.tobytes() for e in second]
    assert [e.sparse for e in first] == [e.sparse for e in second]


def test_a_query_is_computed_once_for_both_lanes(embedding_model, monkeypatch):
    embedder = flag_of(embedding_model)
    embedder.dense(QUERY)
    monkeypatch.setattr(embedder._model, "encode", None)
    assert embedder.sparse_query(QUERY).indices


def test_what_is_over_max_tokens_is_cut(embedding_model):
    embedder = flag_of(embedding_model, max_tokens=8)
    assert embedder.dense("the " * 6).tobytes() == embedder.dense("the " * 6 + "cheese").tobytes()
    assert embedder.tokens("the " * 20).shape[0] == 8 - 1


def test_an_empty_text_has_a_dense_vector_and_no_lexical_weights(embedder):
    assert embedder.sparse_query("").indices == []
    assert np.linalg.norm(embedder.dense("")) == pytest.approx(1, abs=1e-5)


def test_no_documents_have_no_scores(reranker):
    assert reranker.scores(QUERY, []) == []


def test_one_document_of_any_length_has_a_score(reranker):
    assert len(reranker.scores(QUERY, ["cheese " * 500])) == len(reranker.scores("where " * 500, [""])) == 1


def test_pairs_computed_one_by_one_do_not_depend_on_each_other(reranking_model):
    alone = cross_encoder_of(reranking_model, batch_size=1)
    assert alone.scores(QUERY, TEXTS) == [alone.scores(QUERY, [text])[0] for text in TEXTS]


def test_nothing_is_printed(embedder, reranker, capfd):
    list(embedder.documents([TEXTS * 4]))
    reranker.scores(QUERY, TEXTS * 4)
    assert capfd.readouterr() == ("", "")


# From the corpus to a ranking


def test_the_sparse_lane_ranks_by_the_product_of_learnt_weights(embedding_model):
    rows = [{"doc_id": f"d{i}", "title": "", "text": text, "metadata": ()} for i, text in enumerate(TEXTS)]
    corpus = artifacts.table(artifacts.CORPUS, rows)
    params = FlagEmbedder(kind="flag", model=str(embedding_model), **SETTINGS)
    embedder = embedders.load(params)
    joined = join(corpus, index(corpus, params, None), embedder)
    query = embedder.sparse_query(QUERY)
    wanted = {}
    for document, (indices, values) in zip(joined.documents, joined.sparse, strict=True):
        held = dict(zip(indices.tolist(), values.tolist(), strict=True))
        wanted[document.doc_id] = sum(w * held.get(token, 0) for token, w in zip(query.indices, query.values, strict=True))
    found = open_store(Store(backend="local"), joined).sparse(query.indices, query.values, 3, frozenset())
    assert dict(found) == pytest.approx({name: score for name, score in wanted.items() if score}, rel=1e-5)


def test_the_stages_run_with_both_models(project, embedding_model, reranking_model):
    chosen = [override for override in OVERRIDES if not override.startswith("retrieval=")]
    embed = ("embedder=bge_m3", f"embedder.model={embedding_model}", "embedder.max_tokens=32")
    rerank = ("reranker=bge_reranker", f"reranker.model={reranking_model}", "reranker.max_tokens=64")
    project.ok("compose", *chosen, "retrieval=[hybrid_rerank]", *embed, *rerank)
    for command in (("index",), ("retrieve", "hybrid_rerank"), ("calibrate", "hybrid_rerank")):
        project.ok(*command)
    reranker = cross_encoder_of(reranking_model, max_tokens=64, batch_size=1)
    texts = {row["doc_id"]: f"{row['title']}\n{row['text']}" for row in CORPUS}
    questions = {question_id: text for question_id, text, *_ in QUESTIONS}
    hits = project.read(str(layout.hits("hybrid_rerank")), artifacts.HITS)
    assert hits
    for hit in hits:
        [score] = reranker.scores(questions[hit["question_id"]], [texts[hit["doc_id"]]])
        assert hit["score"] == pytest.approx(1 / (1 + np.exp(-score)))


def test_weights_that_were_saved_by_torch_alone_are_loaded_too(embedder, copied):
    """bge-m3 is published so: pytorch_model.bin, and no safetensors."""
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(copied / "model.safetensors"), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    assert flag_of(copied).dense(QUERY).tobytes() == embedder.dense(QUERY).tobytes()


# Who computes


def test_one_folder_and_one_setting_have_one_identity(embedder, embedding_model):
    assert flag_of(embedding_model).identity == embedder.identity


@pytest.mark.parametrize("change", [{"max_tokens": 16}, {"batch_size": 3}, {"threads": 2}])
def test_a_setting_that_can_change_a_bit_changes_the_identity(embedder, embedding_model, change):
    assert flag_of(embedding_model, **change).identity != embedder.identity


@pytest.mark.parametrize("name", ["model.safetensors", "sparse_linear.pt", "colbert_linear.pt", "tokenizer.json", "config.json"])
def test_a_changed_file_changes_the_identity_and_its_place_does_not(embedder, copied, name):
    assert flag_of(copied).identity == embedder.identity
    with (copied / name).open("ab") as file:
        file.write(b"\n")
    assert flag_of(copied).identity != embedder.identity


def test_a_file_of_the_hubs_cache_is_known_by_the_name_of_its_blob(copied):
    blob = copied.parent / ("0123456789abcdef" * 4)
    os.rename(copied / "model.safetensors", blob)
    (copied / "model.safetensors").symlink_to(blob)
    assert json.loads(flag_of(copied).identity)["files"]["model.safetensors"] == "0123456789abcdef" * 4


# Refusals


def refusal(model: Path | str, **changes: Any) -> str:
    with pytest.raises(ArenaError) as caught:
        flag_of(model, **changes).dense(QUERY)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rerank_refusal(model: Path) -> str:
    with pytest.raises(ArenaError) as caught:
        cross_encoder_of(model).scores(QUERY, TEXTS)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "sparse_linear.pt", "colbert_linear.pt"])
def test_a_folder_without_one_of_its_files_is_refused(copied, name):
    """FlagEmbedding would fill the linear layers with random numbers."""
    (copied / name).unlink()
    assert refusal(model=copied) == f"{copied}: {name} is missing; embedder.model must name a whole folder of a model"


EMBEDDERS_FILES = ["tokenizer.json", "tokenizer_config.json", "model.safetensors", "sparse_linear.pt", "colbert_linear.pt"]
SPOILT = {"empty": lambda _: b"", "cut": lambda whole: whole[: len(whole) // 2], "foreign": lambda _: b"<html>"}


def spoil(model: Path, name: str, how: str) -> None:
    (model / name).write_bytes(SPOILT[how]((model / name).read_bytes()))


@pytest.mark.parametrize("name", EMBEDDERS_FILES)
@pytest.mark.parametrize("how", SPOILT)
def test_a_file_of_an_embedder_that_cannot_be_read_is_named(copied, name, how):
    spoil(copied, name, how)
    assert refusal(model=copied) == f"{copied}: {name} cannot be read; fetch the model again"


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "model.safetensors"])
@pytest.mark.parametrize("how", SPOILT)
def test_a_file_of_a_reranker_that_cannot_be_read_is_named(copied_reranker, name, how):
    spoil(copied_reranker, name, how)
    assert rerank_refusal(copied_reranker) == f"{copied_reranker}: {name} cannot be read; fetch the model again"


@pytest.mark.parametrize("content", ["", '{"max_position_em', "[]", "{}", '{"max_position_embeddings": null}'])
def test_a_configuration_without_a_length_is_refused(copied, content):
    (copied / "config.json").write_text(content)
    assert refusal(model=copied) == f"{copied}/config.json: is no JSON with max_position_embeddings; fetch the model again"


@pytest.mark.parametrize("name", ["sparse_linear.pt", "tokenizer.json"])
def test_a_file_that_holds_something_else_is_refused(copied, name):
    import torch

    torch.save([1], copied / name) if name.endswith(".pt") else (copied / name).write_text("[]")
    message = refusal(model=copied)
    assert message.startswith(f"{copied}: cannot be loaded (")
    assert message.endswith("; fetch the model again")


# Transformers would fill what is missing with random numbers, and only warn


def test_an_embedder_in_place_of_a_reranker_is_refused(copied):
    lacks = "holds no classifier.dense.bias and 3 weights more"
    assert rerank_refusal(copied) == f"{copied}: {lacks}; reranker.model must name a model of the right kind"


def test_weights_that_are_not_all_there_are_refused(copied):
    from safetensors.torch import load_file, save_file

    weights = load_file(copied / "model.safetensors")
    del weights["embeddings.LayerNorm.bias"]
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    lacks = "holds no embeddings.LayerNorm.bias"
    assert refusal(model=copied) == f"{copied}: {lacks}; embedder.model must name a model of the right kind"


def test_a_pooler_is_not_asked_for(embedder, copied):
    from safetensors.torch import load_file, save_file

    weights = {name: tensor for name, tensor in load_file(copied / "model.safetensors").items() if "pooler" not in name}
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    assert flag_of(copied).dense(QUERY).tobytes() == embedder.dense(QUERY).tobytes()


def test_a_classifier_in_place_of_a_reranker_is_refused(tmp_path):
    model = tinymodels.reranker(tmp_path, labels=3)
    assert rerank_refusal(model) == f"{model}: has 3 labels; reranker.model must name a model with one"


@pytest.mark.parametrize("name", ["/no/such/model", "./bge-m3", "../models/bge-m3", "~/bge-m3"])
def test_a_path_that_is_no_folder_is_told_without_asking_the_hub(name):
    assert refusal(model=name) == f"embedder.model: there is no folder {name}"


def test_weights_of_another_shape_are_refused(copied, reranking_model):
    import torch

    torch.save(torch.nn.Linear(16, 1).state_dict(), copied / "sparse_linear.pt")
    assert refusal(model=copied).startswith(f"{copied}: cannot be loaded (Error(s) in loading state_dict")


def test_more_tokens_than_the_model_has_positions_are_refused(embedding_model):
    message = refusal(model=embedding_model, max_tokens=tinymodels.LONGEST + 1)
    assert message == f"embedder.max_tokens: {tinymodels.LONGEST + 1} is over the model's {tinymodels.LONGEST}; lower it"
    assert flag_of(embedding_model, max_tokens=tinymodels.LONGEST).dense("the " * 100).shape == (32,)


def test_a_device_that_is_not_there_is_refused(embedding_model):
    message = refusal(model=embedding_model, device="cuda:7")
    assert message.startswith("embedder.device: cuda:7 cannot be used (")
    assert message.endswith("); set cpu")


def test_a_model_that_fails_on_a_text_names_it(copied):
    config = json.loads((copied / "tokenizer.json").read_text())
    config["model"]["vocab"].append(["▁beyond", -1.0])  # a token that the weights have no row for
    (copied / "tokenizer.json").write_text(json.dumps(config))
    with pytest.raises(ArenaError) as caught:
        list(flag_of(copied).documents([["the alps", "the rhine begins beyond"]]))
    assert str(caught.value).startswith(f"{copied}: fails on 2 texts, the longest of 23 characters, 'the rhine begins beyond' (")
    assert str(caught.value).endswith("); lower embedder.batch_size or embedder.max_tokens")


def test_a_vector_that_is_not_finite_is_refused(copied):
    from safetensors.torch import load_file, save_file

    weights = load_file(copied / "model.safetensors")
    weights["encoder.layer.0.output.LayerNorm.bias"][0] = float("nan")
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    message = refusal(model=copied)
    assert message == f"{copied}: gives no finite vector for {QUERY!r}; set embedder.use_fp16 to false"


def test_a_score_that_is_not_finite_is_refused(reranking_model, tmp_path):
    from safetensors.torch import load_file, save_file

    broken = Path(shutil.copytree(reranking_model, tmp_path / "broken"))
    weights = load_file(broken / "model.safetensors")
    weights["classifier.out_proj.bias"][0] = float("inf")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ArenaError, match=f"^{broken}: gives no finite score for {QUERY!r}; set reranker.use_fp16 to false$"):
        cross_encoder_of(broken).scores(QUERY, TEXTS)


def test_a_name_that_is_no_folder_and_that_the_hub_does_not_give_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    message = refusal(model="BAAI/bge-m3")
    assert message.startswith("embedder.model: BAAI/bge-m3 is no folder, and the Hugging Face Hub does not give it (")


def test_a_token_that_no_header_can_carry_is_refused_before_the_hub_is_asked(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_schlüssel")
    told = "HF_TOKEN holds a line break or a character outside ASCII; set it anew"
    assert refusal("BAAI/bge-m3") == f"embedder.model: BAAI/bge-m3: {told}"


def test_of_the_hub_only_what_is_loaded_is_fetched(monkeypatch, copied):
    from huggingface_hub.utils import filter_repo_objects

    published = ["README.md", "1_Pooling/config.json", "imgs/bm25.jpg", "onnx/config.json", "onnx/model.onnx_data", "long.jpg"]
    wanted = ["config.json", "tokenizer.json", "sentencepiece.bpe.model", "pytorch_model.bin", "sparse_linear.pt"]

    def fetched(name, revision, allow_patterns, ignore_patterns):
        assert (name, revision) == ("BAAI/bge-m3", "main")
        kept = filter_repo_objects([*published, *wanted], allow_patterns=allow_patterns, ignore_patterns=ignore_patterns)
        assert list(kept) == wanted
        return str(copied)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    assert flag_of("BAAI/bge-m3").dense(QUERY).shape == (32,)


def test_a_name_that_could_be_neither_is_refused():
    assert refusal("models/of/mine").startswith("embedder.model: models/of/mine is no folder, and the Hugging Face Hub does not")


@pytest.mark.parametrize("module", ["FlagEmbedding", "torch", "transformers.utils"])
def test_packages_that_do_not_go_together_are_told(embedding_model, monkeypatch, module):
    embedder = flag_of(embedding_model)
    monkeypatch.setitem(sys.modules, module, None)
    told = r"^FlagEmbedding cannot be imported \(.+\); `make setup-flag` installs versions that go together$"
    with pytest.raises(ArenaError, match=told):
        embedder.dense(QUERY)


def test_packages_that_are_not_installed_are_named(embedding_model, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(ArenaError, match=r"^params\.yaml: reranker needs torch, which `make setup-flag` installs$"):
        Folder(FlagEmbedder(kind="flag", model=str(embedding_model), **SETTINGS), "reranker")
