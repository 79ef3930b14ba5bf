"""Tiny random models in the layout of bge-m3 and bge-reranker-v2-m3, made on the spot. Only these tests import torch."""

from pathlib import Path

WORDS = [
    *("the", "a", "rhine", "danube", "elbe", "river", "begins", "in", "alps", "forest"),
    *("where", "does", "cheese", "is", "made", "of"),
]
LONGEST = 64  # tokens
_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def _configured(folder: Path, seed: int, **settings):
    """A tokenizer of whole words and letters in the folder, and a configuration of one small layer for it."""
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaTokenizer

    torch.manual_seed(seed)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [(f"▁{word}", -2.0) for word in WORDS] + [(letter, -9.0) for letter in ["▁", *letters]]
    vocabulary = [(token, 0.0) for token in _SPECIAL] + pieces + [("<mask>", 0.0)]
    tokenizer = XLMRobertaTokenizer(vocab=vocabulary)
    tokenizer.save_pretrained(folder)
    return XLMRobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LONGEST + 2,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        initializer_range=0.5,
        **settings,
    )


def embedder(folder: Path, seed: int = 0) -> Path:
    """bge-m3's layout: XLM-RoBERTa, a linear layer for lexical weights and one for late interaction."""
    import torch
    from transformers import XLMRobertaModel

    config = _configured(folder, seed)
    XLMRobertaModel(config).save_pretrained(folder)
    for name, width in (("sparse", 1), ("colbert", config.hidden_size)):
        layer = torch.nn.Linear(config.hidden_size, width)
        if name == "sparse":
            torch.nn.init.constant_(layer.bias, 1.0)  # else the weights of many tokens are 0
        torch.save(layer.state_dict(), folder / f"{name}_linear.pt")
    return folder


def reranker(folder: Path, seed: int = 0, labels: int = 1) -> Path:
    """bge-reranker-v2-m3's layout: XLM-RoBERTa with one label."""
    from transformers import XLMRobertaForSequenceClassification

    XLMRobertaForSequenceClassification(_configured(folder, seed, num_labels=labels)).save_pretrained(folder)
    return folder
