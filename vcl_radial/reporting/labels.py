"""Label benchmarks and methods in a report by the settings that differ between runs of one name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, count
from typing import Any

from vcl_radial.runs import catalogue

CLASS_KEYS = ("strategy", "posterior", "network", "kind", "dataset")
"""Keys that name a class or a function; a label shows the name without the module."""


@dataclass(frozen=True)
class LabelParts:
    """The parts of a label.

    Attributes:
        group: the group of runs whose labels must differ.
        name: the beginning of the label.
        values: the settings, with dotted keys.
        checksum: checksum of the user's files that the settings name.
        default: values that `name` implies; other values are shown even if all runs have them.
    """

    group: Hashable
    name: str
    values: Mapping[str, Any]
    checksum: str | None = None
    default: Mapping[str, Any] = field(default_factory=dict)


def labels(runs: Sequence[LabelParts], files: str) -> list[str]:
    """A label for each run, such as `gaussian-vcl (posterior: Laplace, epochs=40)`.

    Brackets hold the settings in which runs of one group differ, as a user would set them. Keys
    that a run does not set are not shown, nor values that the name implies. If only the user's
    files differ, the label shows their checksum.

    Args:
        runs: the settings of the runs.
        files: the noun for the user's files, such as "code".

    Returns:
        One label per run, in order; runs of one group have equal labels only if their settings and
        their files are the same.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        groups[run.group].append(index)
    texts = [""] * len(runs)
    for indices in groups.values():
        parts = _differences([runs[index] for index in indices])
        checksums = defaultdict(set)
        for index, part in zip(indices, parts, strict=True):
            checksums[part].add(runs[index].checksum)
        for index, part in zip(indices, parts, strict=True):
            checksum = runs[index].checksum if len(checksums[part]) > 1 else None
            shown = [*part, f"{files} {checksum[:6]}"] if checksum else part
            name = runs[index].name
            texts[index] = f"{name} ({', '.join(shown)})" if shown else name
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
    text = re.sub(r"[][(){}'\"]", " ", name).replace(": ", "=")
    text = re.sub(r"(?<=\d), (?=\d)", "-", text).replace("= ", "=")
    stem = re.sub(r"[^\w.=-]+", "_", text).strip("_").lstrip(".")
    # A file system limits bytes; a prefix and an extension need room.
    return stem.encode()[:80].decode(errors="ignore") or "unnamed"


def unused(stem: str, used: Container[str]) -> str:
    """The stem, with a number if it is used already."""
    return next(s for s in chain([stem], (f"{stem}-{n}" for n in count(2))) if s not in used)


@cache
def shipped_classes(method: str) -> dict[str, str]:
    """Strategy and posterior of a method of the catalogue; empty for other names.

    A run with other classes (`--set posterior=radial`) differs from the method of its name.
    """
    if method not in catalogue.names("method"):
        return {}
    table = catalogue.load("method", method).table
    return {key: table[key] for key in ("strategy", "posterior") if key in table}


def _differences(runs: Sequence[LabelParts]) -> list[tuple[str, ...]]:
    """For each run of a group, the values of the shown keys."""
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
    # Without quotes, true and "True" look the same.
    return plain if len({", ".join(p) for p in plain}) == len(set(quoted)) else quoted


def _shown_keys(runs: Sequence[LabelParts]) -> dict[str, list[str]]:
    """The keys whose values differ between runs, or from the value that the name implies."""
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


def _set(run: LabelParts, keys: Sequence[str]) -> list[tuple[str, Any]]:
    """The values of these keys that a run shows."""
    values = [(key, run.values.get(key)) for key in keys]
    return [(k, v) for k, v in values if v is not None and v != run.default.get(k)]


def _short_names(names: set[str]) -> dict[str, str]:
    """Names of classes without their modules, if they stay distinct."""
    short = {name: name.partition(":")[2] or name for name in names}
    return short if len(set(short.values())) == len(short) else {name: name for name in short}
