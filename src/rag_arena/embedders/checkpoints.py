"""Folders of weights that torch loads: found or fetched, named by their bytes, and refused in one line."""

import hashlib
import importlib.metadata
import importlib.util
import io
import json
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.llm.keys import header_from
from rag_arena.params import Checkpoint
from rag_arena.wording import count, first_line

_PACKAGES = ("FlagEmbedding", "torch", "transformers")
_READ = ("*.json", "*.model", "*.safetensors", "*.bin", "*.pt")  # of a folder, not of those below it
_NOT_USED = "pooler."  # of XLM-RoBERTa's weights
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Folder:
    """A model's folder.

    Args:
        params: which model, and on what it runs.
        section: where these parameters stand in params.yaml.
        needed: files that it must have beside its configuration and weights.

    Raises:
        ArenaError: packages or files are missing, or the Hub does not give them.
    """

    def __init__(self, params: Checkpoint, section: str, needed: Sequence[str] = ()) -> None:
        if missing := [package for package in _PACKAGES if importlib.util.find_spec(package) is None]:
            raise ArenaError(f"params.yaml: {section} needs {', '.join(missing)}, which `make setup-flag` installs")
        self._params = params
        self._section = section
        self.path = Path(params.model) if Path(params.model).is_dir() else _fetched(params, section)
        for name in ("config.json", "tokenizer.json", *needed):
            if not (self.path / name).is_file():
                raise ArenaError(f"{self.path}: {name} is missing; {section}.model must name a whole folder of a model")
        self._check_length()

    def identity(self) -> dict[str, Any]:
        """All that can change what the model computes."""
        params = self._params
        return {
            "files": {path.name: _sha256(path) for path in self._files()},
            "engine": [f"{package} {importlib.metadata.version(package)}" for package in _PACKAGES],
            "max_tokens": params.max_tokens,
            "batch_size": params.batch_size,
            "device": [params.device.partition(":")[0], params.use_fp16, params.threads if params.device == "cpu" else None],
        }

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Load the model in here.

        Raises:
            ArenaError: the packages do not go together, the device is not there, or the files do not hold the model.
        """
        try:
            import FlagEmbedding  # noqa: F401 (what loads the model imports from it)
            import torch
            from safetensors import SafetensorError
            from transformers.utils import logging
        except (ImportError, OSError) as error:
            mend = "`make setup-flag` installs versions that go together"
            raise ArenaError(f"FlagEmbedding cannot be imported ({_line(error)}); {mend}") from error
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        torch.set_num_threads(self._params.threads)
        unreadable = (SafetensorError, pickle.UnpicklingError)
        try:
            torch.zeros(1, device=self._params.device)
        except (RuntimeError, AssertionError) as error:
            raise ArenaError(f"{self._section}.device: {self._params.device} cannot be used ({_line(error)}); set cpu") from error
        try:
            with redirect_stderr(io.StringIO()), self._complete():
                yield
        except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, *unreadable) as error:
            broken = next((path.name for path in self._files() if not _readable(path)), None)
            why = f"{broken} cannot be read" if broken else f"cannot be loaded ({_line(error)})"
            raise ArenaError(f"{self.path}: {why}; fetch the model again") from error

    @contextmanager
    def computing(self, texts: Sequence[str]) -> Iterator[None]:
        """Run the model on texts in here.

        FlagEmbedding draws bars of its own on standard error, which are not shown, and whatever goes wrong inside it comes out as
        one of the errors below.

        Raises:
            ArenaError: naming the longest of the texts, which is the likeliest to be at fault.
        """
        try:
            with redirect_stderr(io.StringIO()):
                yield
        except (AttributeError, IndexError, RuntimeError) as error:
            longest = max(texts, key=len)
            raise ArenaError(
                f"{self.path}: fails on {len(texts)} texts, the longest of {len(longest)} characters, {longest[:40]!r} "
                f"({_line(error)}); lower {self._section}.batch_size or {self._section}.max_tokens"
            ) from error

    def _files(self) -> list[Path]:
        return sorted({path for pattern in _READ for path in self.path.glob(pattern)})

    @contextmanager
    def _complete(self) -> Iterator[None]:
        """Within it transformers refuses what it fills with random numbers elsewhere: weights that the folder lacks."""
        from transformers import PreTrainedModel

        load = PreTrainedModel.from_pretrained.__func__

        def loaded(model_class: Any, *args: Any, **settings: Any) -> Any:
            model, found = load(model_class, *args, output_loading_info=True, **settings)
            if missing := sorted(name for name in found["missing_keys"] if not name.startswith(_NOT_USED)):
                lacks = f"holds no {missing[0]}" + (f" and {count(len(missing) - 1, 'weight')} more" if missing[1:] else "")
                raise ArenaError(f"{self.path}: {lacks}; {self._section}.model must name a model of the right kind")
            return model

        PreTrainedModel.from_pretrained = classmethod(loaded)
        try:
            yield
        finally:
            PreTrainedModel.from_pretrained = classmethod(load)

    def _check_length(self) -> None:
        path = self.path / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
            # XLM-RoBERTa numbers positions from the padding token's id on
            most = config["max_position_embeddings"] - config.get("pad_token_id", 1) - 1
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ArenaError(f"{path}: is no JSON with max_position_embeddings; fetch the model again") from error
        if self._params.max_tokens > most:
            raise ArenaError(f"{self._section}.max_tokens: {self._params.max_tokens} is over the model's {most}; lower it")


def _fetched(params: Checkpoint, section: str) -> Path:
    if params.model.startswith(("/", ".", "~")):
        raise ArenaError(f"{section}.model: there is no folder {params.model}")
    header_from("HF_TOKEN", f"{section}.model: {params.model}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(params.model, revision=params.revision, allow_patterns=list(_READ), ignore_patterns="*/*"))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        why = _line(error)
        raise ArenaError(
            f"{section}.model: {params.model} is no folder, and the Hugging Face Hub does not give it ({why})"
        ) from error


def _readable(path: Path) -> bool:
    """Whether the reader of such a file takes it; true of what is not read."""
    import torch
    from safetensors import safe_open

    try:
        if path.suffix == ".json":
            json.loads(path.read_bytes())
        elif path.suffix == ".safetensors":
            safe_open(path, "pt")
        elif path.suffix == ".pt" or path.name.startswith("pytorch_model"):
            torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # each reader has errors of its own, torch's many
        return False
    return True


def _sha256(path: Path) -> str:
    """The Hub's cache names large files by their digest; others are read."""
    target = path.resolve().name
    if path.is_symlink() and _SHA256.fullmatch(target):
        return target
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line(error: Exception) -> str:
    return first_line(error)[:200]
