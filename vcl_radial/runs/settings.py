"""Tables of settings: known keys, strict types, a digest, and the first fault as one line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from vcl_radial.errors import UserError, nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

UNNAMED_TABLE = "recipe"
"""The table whose keys a user writes without the name of the table."""


class Settings(BaseModel):
    """A table with known keys and strict types only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Model = TypeVar("Model", bound=BaseModel)


def digest_of(content: Mapping[str, Any]) -> str:
    """A SHA-256 of settings in hexadecimal digits; it does not depend on the order of keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def validated(model: type[Model], table: Mapping[str, Any], where: str, prefix: str = "") -> Model:
    """Validate a table by its model.

    Args:
        model: the model of the table.
        table: plain values by key.
        where: the file or run of the table; error messages begin with it.
        prefix: prefix of the keys in messages, as the user writes them.

    Raises:
        UserError: a key is unknown or missing, or a value impossible; one line with the fix.
    """
    try:
        return model.model_validate(dict(table))
    except ValidationError as error:
        # A misspelt key is the reason why another one is missing.
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        key, message = _describe(fault, model, table, prefix)
        user_error = UserError(f"{where}: {message}")
        user_error.key = key
        raise user_error from None


_OTHER_COUNT = {"steps": "epochs", "epochs": "steps", "first_task_epochs": "steps"}
"""Some tracks count steps and others epochs: the key that a track has in place of another's."""


def _describe(
    fault: ErrorDetails, model: type[BaseModel], table: Mapping[str, Any], prefix: str
) -> tuple[str, str]:
    """The key of a fault, and a message with the nearest known key or the reason, in one line."""
    missing = fault["type"] == "missing"
    parts = fault["loc"] if missing else _in_table(fault["loc"], table)
    names = [part for part in parts if isinstance(part, str)]
    key = (prefix + _dotted(names)).rstrip(".")
    key += "".join(f"[{part}]" for part in parts if isinstance(part, int))
    key = key or "spec"
    if fault["type"] == "extra_forbidden":
        known = _known_keys(model, names[:-1], table)
        other = _OTHER_COUNT.get(names[-1])
        near = known[other if other in known else nearest(names[-1], known)]
        near = prefix + _dotted([*names[:-1], near])
        return key, f"unknown key {key!r}; the nearest known one is {near!r}"
    if missing:
        return key, f"the key {key!r} is missing"
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "too_short":
        message = f"give at least {fault['ctx']['min_length']}"
    message = message[0].lower() + message[1:]
    if fault["type"] in ("dict_type", "model_type"):
        message = f"must be a table, [{key}]"
    if fault["type"] == "value_error" and isinstance(fault["input"], dict):
        # The message names keys that contradict each other, but not their inner table.
        message = f"{key}: {message}" if prefix else message
    elif parts or prefix:
        message = f"{key} = {fault['input']!r}: {message}"
    return key, message


def _dotted(names: Iterable[str]) -> str:
    """A key with the names of its tables, as a user writes it."""
    return ".".join(name for name in names if name != UNNAMED_TABLE)


def _in_table(location: tuple[int | str, ...], table: Any) -> list[int | str]:
    """The parts of a fault's location that are keys; pydantic also names members of unions."""
    parts: list[int | str] = []
    for part in location:
        inside = isinstance(table, Mapping) and part in table
        if not inside and not (isinstance(table, list) and isinstance(part, int)):
            continue
        parts.append(part)
        table = table[part]
    return parts


def _known_keys(
    model: type[BaseModel], names: list[str], table: Mapping[str, Any]
) -> dict[str, str]:
    """The keys of an inner table, by the texts that a user may write for them.

    For `UNNAMED_TABLE` these are its keys, its options, and the keys of named tables.
    """
    known = {key: key for key in _model_at(model, names).model_fields}
    if names != [UNNAMED_TABLE]:
        return known
    inner = {name: _models(field.annotation) for name, field in model.model_fields.items()}
    named: dict[str, Iterable[str]] = {
        name: models[0].model_fields for name, models in inner.items() if models
    }
    options = table[UNNAMED_TABLE].get("options")
    named |= {"options": options if isinstance(options, dict) else {}}
    for name, keys in named.items():
        for key in keys:
            known.setdefault(key, f"{name}.{key}")
    return known


def _model_at(model: type[BaseModel], names: list[str]) -> type[BaseModel]:
    """The model of an inner table, or of the tables of a list."""
    for name in names:
        annotation = model.model_fields[name].annotation
        in_lists = [m for inner in get_args(annotation) for m in _models(inner)]
        model = (*_models(annotation), *in_lists)[0]
    return model


def tables_in(model: Any) -> set[str]:
    """The keys of a model whose values are tables."""
    fields: dict[str, Any] = getattr(model, "model_fields", {})
    return {
        name
        for name, field in fields.items()
        if _models(field.annotation) or get_origin(field.annotation) is dict
    }


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models that an annotation names."""
    options = [annotation, *get_args(annotation)]
    return [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
