"""Names of benchmarks and methods in a report: what differs between runs of one name, no more."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, count
from typing import Any

from vcl_radial.runs import catalogue

CLASS_KEYS = ("strategy", "posterior", "network", "kind", "dataset")
"""Keys that name a class or a function; a label has its name without the module's."""


@dataclass(frozen=True)
class Settings:
    """What a label is made of.

    Attributes:
        group: Runs of other groups need not be told apart from this one.
        name: What the label begins with.
        values: The settings, with dotted keys.
        checksum: Of files of the user's own that the settings name.
        default: Values that `name` stands for: others are shown even where all runs have them.
    """

    group: Hashable
    name: str
    values: Mapping[str, Any]
    checksum: str | None = None
    default: Mapping[str, Any] = field(default_factory=dict)


def labels(runs: Sequence[Settings], files: str) -> list[str]:
    """A label for each run, such as `gaussian-vcl (posterior: Laplace, epochs=40)`.

    In brackets are the settings in which runs of one group differ, as a user would set them. A key
    that a run does not set is not shown, and neither is a value that the name stands for. Where
    nothing but the files of the user's own differ, their checksums tell the runs apart.

    Args:
        runs: The settings of the runs.
        files: What the checksums are of, in a word.

    Returns:
        One label per run, in order; runs of one group have the same label only where their
        settings and their files are the same.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        groups[run.group].append(place)
    texts = [""] * len(runs)
    for places in groups.values():
        parts = _differences([runs[place] for place in places])
        checksums = defaultdict(set)
        for place, part in zip(places, parts, strict=True):
            checksums[part].add(runs[place].checksum)
        for place, part in zip(places, parts, strict=True):
            checksum = runs[place].checksum if len(checksums[part]) > 1 else None
            words = [*part, f"{files} {checksum[:6]}"] if checksum else part
            name = runs[place].name
            texts[place] = f"{name} ({', '.join(words)})" if words else name
    return texts


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested table with dotted keys."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            values |= flat(value, f"{prefix}{key}.")
        else:
            values[prefix + key] = value
    return values


def file_name(name: str) -> str:
    """A name with its settings, as a file name: `radial-vcl_epochs=5_hidden=8-8`."""
    words = re.sub(r"[][(){}'\"]", " ", name).replace(": ", "=")
    words = re.sub(r"(?<=\d), (?=\d)", "-", words).replace("= ", "=")
    stem = re.sub(r"[^\w.=-]+", "_", words).strip("_").lstrip(".")
    # A file system counts bytes; some room is left for what is put before and after.
    return stem.encode()[:80].decode(errors="ignore") or "unnamed"


def unused(stem: str, used: Container[str]) -> str:
    """The stem, or with a number where names differ only by what a file name cannot hold."""
    return next(s for s in chain([stem], (f"{stem}-{n}" for n in count(2))) if s not in used)


@cache
def shipped_classes(method: str) -> dict[str, str]:
    """Strategy and posterior of a method of the catalogue; empty for another name.

    A run of it with other ones (`--set posterior=radial`) is not what its name says.
    """
    if method not in catalogue.names("method"):
        return {}
    table = tomllib.loads((catalogue.folder("method") / f"{method}.toml").read_text("utf-8"))
    return {key: table[key] for key in ("strategy", "posterior") if key in table}


def _differences(runs: Sequence[Settings]) -> list[tuple[str, ...]]:
    """For each run of a group, its values of the keys that are to be shown."""
    keys = _shown_keys(runs)
    names = {
        key: _short_names({str(value) for run in runs for _, value in _set(run, [key])})
        for key in keys["class"]
    }
    plain, quoted = (
        [
            (
                *(f"{key}: {names[key][str(value)]}" for key, value in _set(run, keys["class"])),
                *(f"{key}={word(value)}" for key, value in _set(run, keys["plain"])),
            )
            for run in runs
        ]
        for word in (str, repr)
    )
    # Without quotes, true and "True" are one word.
    return plain if len({", ".join(p) for p in plain}) == len(set(quoted)) else quoted


def _shown_keys(runs: Sequence[Settings]) -> dict[str, list[str]]:
    """The keys that do not have one value in all runs, or not the one that the name stands for."""
    keys = {key for run in runs for key in (*run.values, *run.default)}
    shown = [
        key
        for key in sorted(keys)
        if len({repr(run.values.get(key)) for run in runs}) > 1
        or any(run.values.get(key) != run.default.get(key, run.values.get(key)) for run in runs)
    ]
    return {
        "class": [key for key in CLASS_KEYS if key in shown],
        "plain": [key for key in shown if key not in CLASS_KEYS],
    }


def _set(run: Settings, keys: Sequence[str]) -> list[tuple[str, Any]]:
    """The values of a run to be shown, of these keys."""
    values = [(key, run.values.get(key)) for key in keys]
    return [(k, v) for k, v in values if v is not None and v != run.default.get(k)]


def _short_names(names: set[str]) -> dict[str, str]:
    """Names of classes without their modules, where they differ then too."""
    short = {name: name.partition(":")[2] or name for name in names}
    return short if len(set(short.values())) == len(short) else {name: name for name in short}
