"""params.yaml, read and checked; refusals name the key, and for an unknown key the nearest known one."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from rag_arena.errors import ArenaError
from rag_arena.params.nearest import nearest
from rag_arena.params.root import Params

S = TypeVar("S", bound=BaseModel)


def validate(values: object, source: str) -> Params:
    """Check composed parameters, all but the settings of strategies, which `strategies.check` knows.

    Raises:
        ArenaError: naming the source, the key, and for an unknown key the nearest known one.
    """
    if not isinstance(values, dict):
        raise ArenaError(f"{source}: not a mapping of parameters; make it anew with `arena compose`")
    return section(Params, values, source, "")


def section(model: type[S], values: Mapping[str, Any], source: str, prefix: str) -> S:
    """Check one section's values; `prefix` is where it stands in params.yaml, with a final dot."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ArenaError(f"{source}: {_explain(error, model, prefix)}") from error


def load(path: Path) -> Params:
    """Read and check params.yaml.

    Raises:
        ArenaError: it is missing, or as `parse`.
    """
    return parse(read(path), str(path))


def read(path: Path) -> bytes:
    """The bytes of params.yaml.

    Raises:
        ArenaError: it is missing.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ArenaError(f"{path}: missing; make it with `arena compose` in the project's folder") from error


def parse(content: bytes, source: str) -> Params:
    """Check the bytes of params.yaml.

    Hydra and Snakemake read YAML 1.1 (`010` is 8, `yes` is true), DVC reads 1.2 (10, "yes"); what they would read differently is
    refused.

    Raises:
        ArenaError: not YAML, or as `validate`.
    """
    try:
        text = content.decode()
        values = yaml.safe_load(text)
        as_dvc = YAML(typ="safe", pure=True).load(text)
    except (yaml.YAMLError, YAMLError, UnicodeDecodeError) as error:
        raise ArenaError(f"{source}: not YAML ({' '.join(str(error).split())})") from error
    for key, ours, theirs in _disagreements(values, as_dvc, ""):
        raise ArenaError(f"{source}: {key} is {ours!r} to Snakemake and {theirs!r} to DVC; write the number in full or quote it")
    return validate(values, source)


def _disagreements(ours: Any, theirs: Any, key: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict) and set(ours) == set(theirs):
        for name in ours:
            yield from _disagreements(ours[name], theirs[name], f"{key}.{name}" if key else str(name))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for position, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from _disagreements(*pair, f"{key}[{position}]")
    elif (type(ours), ours) != (type(theirs), theirs) and ours == ours:  # NaN is refused elsewhere
        yield key, ours, theirs


def _explain(error: ValidationError, model: type[BaseModel], prefix: str) -> str:
    # an unknown key first: it may be the misspelt form of one that is missing
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    names, above = _place(model, first["loc"])
    key = prefix + ".".join(names)
    if first["type"] == "extra_forbidden":
        return f"unknown key {key}{nearest(names[-1], list(above.model_fields))}"
    if first["type"] == "missing":
        return f"key {key} is missing"
    if first["type"] == "union_tag_not_found":
        return f"key {key}.{_unquoted(first)} is missing"
    if first["type"] == "union_tag_invalid":
        known = [tag.strip(" '") for tag in first["ctx"]["expected_tags"].split(",")]
        return f"{key}.{_unquoted(first)}: {first['ctx']['tag']!r} does not exist{nearest(first['ctx']['tag'], known)}"
    if first["type"] == "list_type":
        return f"{key}: must be a list, as {key}=[{first['input']}] (got {first['input']!r})"
    if names[-1:] == ["api_key_env"] and first["type"] == "string_pattern_mismatch":  # what was given may be the key itself
        return f"{key}: must be the name of an environment variable; the key itself belongs in that variable alone"
    message = first["msg"].removeprefix("Value error, ")
    if isinstance(first["input"], dict) and len(first["input"]) > 1:  # the message names the keys; all values would say too much
        return f"{key.rstrip('.')}: {message}" if key else message
    return f"{key}: {message} (got {first['input']!r})"


def _unquoted(error: Mapping[str, Any]) -> str:
    return str(error["ctx"]["discriminator"]).strip("'")


def _place(model: type[BaseModel], location: Sequence[int | str]) -> tuple[list[str], type[BaseModel]]:
    """The keys that lead to an error, and the section of the last one.

    Where a section is a union told apart by one of its keys, pydantic's location holds that key's value as well.
    """
    names: list[str] = []
    rest = list(location)
    while rest:
        names.append(str(rest.pop(0)))
        field = model.model_fields.get(names[-1])
        if field is None or not rest:
            break
        options = (field.annotation, *get_args(field.annotation))
        sections = [option for option in options if isinstance(option, type) and issubclass(option, BaseModel)]
        if field.discriminator is not None:
            tag, key = rest.pop(0), str(field.discriminator)
            sections = [s for s in sections if tag in get_args(s.model_fields[key].annotation)]
        if not sections:
            break
        model = sections[0]
    return [*names, *map(str, rest)], model
