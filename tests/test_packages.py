"""What is pinned, and what the default path does without."""

import re
import subprocess
import sys

import pytest

from tests.project import ROOT

PINNED = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
EVERYTHING = """
import importlib, pkgutil, sys
from pathlib import Path
import rag_arena
for module in pkgutil.walk_packages(rag_arena.__path__, "rag_arena."):
    if module.name != "rag_arena.__main__":
        importlib.import_module(module.name)
import datasets, ragas.metrics.collections
from rag_arena import embedders, rerankers
from rag_arena.params import load
params = load(Path("params.yaml"))
embedder = embedders.load(params.embedder)
rerankers.load(params.reranker, embedder).scores("a question", ["a text"])
print(*sorted({"torch", "transformers", "FlagEmbedding", "safetensors"} & set(sys.modules)))
"""


def _pinned(lock: str) -> dict[str, str]:
    return dict(PINNED.findall((ROOT / lock).read_text()))


def test_the_two_locks_agree_on_what_both_pin():
    base, flag = _pinned("requirements.lock"), _pinned("requirements-flag.lock")
    assert {name: version for name, version in flag.items() if name in base} == {n: v for n, v in base.items() if n in flag}
    assert set(flag) - set(base) >= {"flagembedding", "transformers", "sympy"}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-flag.lock"])
def test_no_lock_pins_a_build_of_torch(lock):
    assert not [name for name in _pinned(lock) if name == "torch" or name.startswith(("nvidia-", "triton"))]


def test_the_default_path_imports_none_of_torch_and_what_needs_it():
    done = subprocess.run([sys.executable, "-c", EVERYTHING], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr
