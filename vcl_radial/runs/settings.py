"""Tables of settings: known keys, strict types, a digest, and the first fault in one line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from vcl_radial.errors import UserError, nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

UNNAMED_TABLE = "recipe"
"""The table whose keys a user writes without its name."""


class Settings(BaseModel):
    """A table with known keys and strict types only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class UnknownKey(UserError):
    """A table has a key that its model does not know.

    Attributes:
        where: of the table, as `validated` was told.
        key: as the user writes it.
        near: the nearest known one.
    """

    key: str

    def __init__(self, where: str, key: str, near: str) -> None:
        super().__init__(where)
        self.args = where, key, near  # of which another process makes it again
        self.where, self.key, self.near = where, key, near

    def __str__(self) -> str:
        return f"{self.where}: unknown key {self.key!r}; the nearest known one is {self.near!r}"


Model = TypeVar("Model", bound=BaseModel)


def digest_of(content: Mapping[str, Any]) -> str:
    """A SHA-256 of settings, as hexadecimal digits. In which order the keys stand says nothing."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def validated(model: type[Model], table: Mapping[str, Any], where: str, prefix: str = "") -> Model:
    """A table as a model.

    Args:
        model: of the table.
        table: plain values by key.
        where: of the table: the beginning of the message.
        prefix: of the keys, as the user writes them.

    Raises:
        UserError: a key is unknown or missing, or a value impossible; in one line with the mend.
    """
    try:
        return model.model_validate(dict(table))
    except ValidationError as error:
        # A misspelt key is the reason why another one is missing.
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        raise _in_words(fault, model, table, where, prefix) from None


def _in_words(
    fault: ErrorDetails, model: type[BaseModel], table: Mapping[str, Any], where: str, prefix: str
) -> UserError:
    """A fault in one line: the key, and the nearest known one or the reason."""
    missing = fault["type"] == "missing"
    parts = fault["loc"] if missing else _in_table(fault["loc"], table)
    names = [part for part in parts if isinstance(part, str)]
    key = (prefix + _written(names)).rstrip(".")
    key += "".join(f"[{part}]" for part in parts if isinstance(part, int))
    key = key or "spec"
    if fault["type"] == "extra_forbidden":
        known = _known_keys(model, names[:-1], table)
        of_table = [*names[:-1], known[nearest(names[-1], known)]]
        return UnknownKey(where, key, prefix + _written(of_table))
    if missing:
        return UserError(f"{where}: the key {key!r} is missing")
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "too_short":
        message = f"give at least {fault['ctx']['min_length']}"
    message = message[0].lower() + message[1:]
    if fault["type"] == "value_error" and isinstance(fault["input"], dict):
        # Keys that do not go together: the message says which, and not of which inner table.
        message = f"{key}: {message}" if prefix else message
    elif parts or prefix:
        message = f"{key} = {fault['input']!r}: {message}"
    return UserError(f"{where}: {message}")


def _written(names: Iterable[str]) -> str:
    """A key with the tables that it is in, as a user writes it."""
    return ".".join(name for name in names if name != UNNAMED_TABLE)


def _in_table(location: tuple[int | str, ...], table: Any) -> list[int | str]:
    """Of a fault's location what is in the table: pydantic names members of unions besides."""
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
    """The keys of an inner table by what a user may have written for them.

    In place of one of `UNNAMED_TABLE`: its own, its options, and those of tables with a name.
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
    """The model of an inner table."""
    for name in names:
        model = _models(model.model_fields[name].annotation)[0]
    return model


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Those that an annotation names."""
    options = [annotation, *get_args(annotation)]
    return [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
