"""Format command lines that can be pasted into a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def command_line(*arguments: str, program: str = "vcl-radial", **options: Any) -> str:
    """Format a command line; options without a value are left out."""
    parts = [*program.split(), *arguments]
    for name, value in options.items():
        if value is not None and value is not False and value != []:
            values = value if isinstance(value, list) else [] if value is True else [value]
            parts += [f"--{name.replace('_', '-')}", *map(str, values)]
    return shlex.join(parts)


def set_arguments(settings: Mapping[str, Any]) -> list[str]:
    """The arguments of `--set` for settings: `key=value` with a value in TOML."""
    return [f"{key}={_toml(value)}" for key, value in settings.items()]


def _toml(value: Any) -> str:
    """A value in one line of TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
