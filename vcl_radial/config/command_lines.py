"""Commands in words that can be pasted into a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def command_line(*arguments: str, program: str = "vcl-radial", **options: Any) -> str:
    """A command in words, with what decides its numbers; an option that is not set is left out."""
    words = [*program.split(), *arguments]
    for name, value in options.items():
        if value is not None and value is not False and value != []:
            values = value if isinstance(value, list) else [] if value is True else [value]
            words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return shlex.join(words)


def settings_in_words(settings: Mapping[str, Any]) -> list[str]:
    """Settings as `--set` takes them, `key=value` with a value in TOML."""
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]
