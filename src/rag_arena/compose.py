"""conf/ to params.yaml: the only door to Hydra."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from rag_arena import strategies
from rag_arena.errors import ArenaError
from rag_arena.params import load, nearest, validate


def compose(conf: Path, overrides: Sequence[str]) -> str:
    """Compose the configuration and return params.yaml's text, exactly as `dvc exp run` would write it.

    Args:
        conf: the folder with config.yaml and its groups.
        overrides: Hydra overrides such as `experiment=smoke` or `retrieval=[dense]`; a value that Hydra's grammar cannot read,
            such as `brück.csv` or `;`, is a text as it stands.

    Raises:
        ArenaError: an override names no known option, or the result breaks the schema.
    """
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not (conf / "config.yaml").is_file():
        raise ArenaError(f"{conf}/config.yaml: missing; run from the project's folder")
    try:
        overrides = [_readable(override) for override in overrides]
        config = _config(conf, overrides)
        missing = list(_missing(OmegaConf.to_container(config)))
        OmegaConf.resolve(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise ArenaError(_refusal(conf, overrides, error)) from error
    if missing:
        added = " ".join(f"{key}=..." for key in missing)
        raise ArenaError(f"{conf}: {', '.join(missing)} must be given: add {added} to the command")
    text: str = OmegaConf.to_yaml(config)
    source = f"{conf} with {' '.join(overrides) or 'no overrides'}"
    strategies.check(validate(yaml.safe_load(text), source), source)
    return text


def differences(old: str, new: str) -> list[str]:
    """One line per key whose value differs between two params.yaml texts, as `key: old -> new`.

    A section that only one of them has is one line: with its values if it is new, with `{…}` if it is gone.
    """
    return list(_differing(_parsed(old), _parsed(new), ""))


def drift(conf: Path, params: Path) -> list[str]:
    """Where params.yaml differs from what its experiment composes to, one line per key.

    Raises:
        ArenaError: params.yaml breaks the schema, or its experiment does not exist.
    """
    found = load(params)
    strategies.check(found)
    composed = compose(conf, [f"experiment={found.experiment}"])
    return differences(composed, params.read_text(encoding="utf-8"))


def _missing(values: Any, prefix: str = "") -> Iterator[str]:
    """The keys that must be given; a section that is taken from another has none of its own."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _missing(value, f"{prefix}{key}.")
        elif value == "???":
            yield f"{prefix}{key}"


def _readable(override: str) -> str:
    """An override whose value Hydra's grammar cannot read, with that value in quotes; unless it begins as a list or a mapping."""
    from hydra.core.override_parser.types import Quote, QuotedString

    key, equals, value = override.partition("=")
    if _is_read(override) or not (key and equals and _is_read(f"{key}=")) or value.startswith(("[", "{")):
        return override
    return f"{key}={QuotedString(value, Quote.single).with_quotes()}"


def _is_read(override: str) -> bool:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        OverridesParser.create().parse_override(override)
    except HydraException:
        return False
    return True


def _config(conf: Path, overrides: Sequence[str]) -> Any:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    with initialize_config_dir(str(conf.resolve()), version_base=None):
        return hydra_compose("config", overrides=list(overrides))


def _refusal(conf: Path, overrides: Sequence[str], error: Exception) -> str:
    """Hydra's error in one line: with the nearest option or key, without search paths and advice that does not hold here."""
    from hydra.errors import HydraException

    said = " ".join(str(error).split())
    if option := getattr(error, "missing_cfg_file", None):
        group = conf / Path(option).parent
        known = sorted(path.stem for path in group.glob("*.yaml"))
        return f"{group}: no option {Path(option).name!r}{nearest(Path(option).name, known)}"
    if match := re.match(r"Could not override '([^'@]+)'", said):
        others = [override for override in overrides if override.partition("=")[0] != match[1]]
        try:
            near = _nearest_key(match[1], _config(conf, others))
        except HydraException as another:
            return _refusal(conf, others, another)
        return f"{conf}: unknown key {match[1]}{near}" if near else f"{conf}: {_not_chosen(match[1], _config(conf, others))}"
    if unread := next((override for override in overrides if not _is_read(override)), None):
        if re.search(r"=[\[{]", unread):
            return f"{conf}: {unread!r} cannot be read; quote what is no plain word, key=['größe'], or a text, key=\"'[a].csv'\""
        return f"{conf}: {unread!r} cannot be read; an override is written key=value, group=option or group=[option,option]"
    if match := re.match(r"Ambiguous value for argument '(.+?)' 1\.", said):
        return (
            f"{conf}: {match[1]}: a list is written key=[a,b], a text with a comma key=\"'a,b'\" (in OVERRIDES key=\\\"'a,b'\\\")"
            f"; to compare values, `dvc exp run --queue -S {match[1]}`"
        )
    if "Recursive interpolation" in said or "RecursionError" in said:
        return f"{conf} with {' '.join(overrides)}: a value is taken from itself; give it one of its own"
    return f"{conf}: {re.split(' To append | Config search path| See https:', said)[0]}"


def _not_chosen(key: str, config: Any) -> str:
    """What to do about a setting of a strategy that is not among those chosen."""
    chosen = ",".join([*config.strategy, *config.floor, key.split(".")[1]])
    return f"{key} belongs to a strategy that is not chosen; add strategy=[{chosen}]"


def _nearest_key(key: str, config: Any) -> str:
    """The end of a message about a key; empty if it belongs to a strategy that exists and is not chosen."""
    from omegaconf import DictConfig

    for position, part in enumerate(key.split(".")):
        if not isinstance(config, DictConfig):
            break
        if part not in config:
            of_strategies = position == 1 and key.startswith("strategy.")
            if of_strategies and part in strategies.known():
                return ""
            return nearest(part, strategies.known() if of_strategies else list(map(str, config)))
        config = config[part]
    return ", or one below it"


_ABSENT = object()


def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError:
        return {}  # nothing to compare with


def _differing(old: Any, new: Any, key: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            yield from _differing(old.get(name, _ABSENT), new.get(name, _ABSENT), f"{key}.{name}" if key else str(name))
    elif new is _ABSENT:
        yield f"{key}: {'{…}' if isinstance(old, dict) else repr(old)} -> (absent)"
    elif old != new:
        yield f"{key}: {'(absent)' if old is _ABSENT else repr(old)} -> {new!r}"
