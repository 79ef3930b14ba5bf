"""conf/ to params.yaml: the only door to Hydra."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from rag_arena import strategies
from rag_arena.errors import ArenaError
from rag_arena.params import load, validate


def compose(conf: Path, overrides: Sequence[str]) -> str:
    """Compose the configuration and return params.yaml's text, exactly as `dvc exp run` would write it.

    Args:
        conf: the folder with config.yaml and its groups.
        overrides: Hydra overrides such as `experiment=smoke` or `retrieval=[dense]`.

    Raises:
        ArenaError: an override names no known option, or the result breaks the schema.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not (conf / "config.yaml").is_file():
        raise ArenaError(f"{conf}/config.yaml: missing; run from the project's folder")
    try:
        with initialize_config_dir(str(conf.resolve()), version_base=None):
            config = hydra_compose("config", overrides=list(overrides))
        OmegaConf.resolve(config)
        missing = sorted(OmegaConf.missing_keys(config))
    except (HydraException, OmegaConfBaseException) as error:
        raise ArenaError(f"{conf}: {' '.join(str(error).split())}") from error
    if missing:
        raise ArenaError(f"{conf}: {', '.join(missing)} must be given: add {missing[0]}=... to the command")
    text: str = OmegaConf.to_yaml(config)
    strategies.check(validate(yaml.safe_load(text), f"{conf} with {' '.join(overrides) or 'no overrides'}"))
    return text


def differences(old: str, new: str) -> list[str]:
    """One line per key whose value differs between two params.yaml texts, as `key: old -> new`."""
    before, after = (dict(_flatten(_parsed(text))) for text in (old, new))
    keys = [*before, *(k for k in after if k not in before)]
    return [f"{k}: {_show(before, k)} -> {_show(after, k)}" for k in keys if before.get(k, _ABSENT) != after.get(k, _ABSENT)]


def drift(conf: Path, params: Path) -> list[str]:
    """Where params.yaml differs from what its experiment composes to, one line per key.

    Raises:
        ArenaError: params.yaml breaks the schema, or its experiment does not exist.
    """
    found = load(params)
    strategies.check(found)
    composed = compose(conf, [f"experiment={found.experiment}"])
    return differences(composed, params.read_text(encoding="utf-8"))


_ABSENT = object()


def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError:
        return {}  # nothing to compare with


def _flatten(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(values, dict) and (values or not prefix):
        for key, value in values.items():
            yield from _flatten(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, values


def _show(values: dict[str, Any], key: str) -> str:
    return repr(values[key]) if key in values else "(absent)"
