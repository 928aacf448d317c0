"""What `run --dry-run` prints of every track: recipes, and what runs would cost."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vcl_radial.config.command_lines import set_arguments
from vcl_radial.errors import UserError
from vcl_radial.reporting.blocks import size
from vcl_radial.runs import catalogue
from vcl_radial.runs.command import check_device
from vcl_radial.runs.devices import device_of
from vcl_radial.runs.planning import NamedMethod, plan
from vcl_radial.runs.settings import UNNAMED_TABLE, Settings
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import AnyTrack, Cost

_WIDTH = 80


def print_costs(
    benchmark: str,
    methods: Sequence[NamedMethod],
    seeds: Sequence[int],
    settings: Mapping[str, Any],
    *,
    tuned: bool = False,
    device: str = "auto",
    data_dir: Path | None = None,
) -> None:
    """Print what one run of each method would cost, and train nothing.

    The arguments have the same meaning as in `perform_command`.

    Raises:
        UserError: a name, a key, a value or the data are wrong.
    """
    track = catalogue.track_of(catalogue.load("benchmark", benchmark))
    runs = plan(benchmark, methods, seeds, settings, tuned)
    check_device(track, benchmark, device)
    track.check_runs(runs)
    where = device_of(device, track, None)
    try:
        shipped = plan(benchmark, methods, seeds)
    except UserError:  # the settings of the command complete those of a file
        shipped = []
    if not track.uses_all_cores and where == "cpu":
        from vcl_radial.system.processor import prepare

        prepare(threads=1)
    print(f"{benchmark}: {len(runs)} run{'s' * (len(runs) > 1)}")
    for line in cost_lines(track, runs, shipped, data_dir, where):
        print(line, flush=True)


def cost_lines(
    track: AnyTrack,
    runs: Sequence[RunSpec],
    shipped: Sequence[RunSpec],
    data_dir: Path | None,
    device: str,
) -> Iterator[str]:
    """Lines on the recipe and the costs of each group of runs that differ only in the seed.

    Args:
        track: the track of the runs.
        runs: the planned runs.
        shipped: the runs of the same methods with the settings that they come with; a run without
            one of the same label is not compared.
        data_dir: the folder of the data.
        device: "cpu" or "cuda".

    Raises:
        UserError: the data cannot be read.
    """
    groups: dict[tuple[str, str], list[RunSpec]] = {}
    for run in runs:
        groups.setdefault((run.method, run.digest()), []).append(run)
    before = {run.label: run for run in shipped}
    costs: list[tuple[int, Cost]] = []
    notes: dict[str, None] = {}
    for group, cost in zip(
        groups.values(), track.costs([*groups.values()], data_dir, device), strict=True
    ):
        first = group[0]
        for note in cost.notes:
            if note not in notes:
                notes[note] = None
                yield note
        yield f"{first.label.rsplit(' seed ', 1)[0]}: {len(group)} run{'s' * (len(group) > 1)}"
        yield from recipe_lines(first, before.get(first.label))
        yield from _wrapped(f"one run: {in_words(cost, device, track.uses_all_cores)}")
        costs.append((len(group), cost))
    known = [(count, cost.seconds) for count, cost in costs if cost.seconds is not None]
    if len(runs) > 1 and len(known) == len(costs):
        seconds = sum(count * seconds for count, seconds in known)
        disk = sum(count * (cost.disk or 0) for count, cost in costs)
        total = Cost("", seconds=seconds, disk=disk or None)
        yield f"all {len(runs)} runs: {in_words(total, device, track.uses_all_cores)}"


def recipe_lines(run: RunSpec, shipped: RunSpec | None) -> Iterator[str]:
    """The keys of a recipe that are not at their default, then those that are not as shipped."""
    recipe = getattr(run, UNNAMED_TABLE)
    if not isinstance(recipe, Settings):
        return
    values = recipe.model_dump(mode="json")
    fields = type(recipe).model_fields
    default = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    chosen = {key: value for key, value in values.items() if value != default[key]}
    yield from _wrapped(f"recipe, beyond defaults: {_keys(chosen)}")
    if shipped is None:
        return
    others = getattr(shipped, UNNAMED_TABLE).model_dump(mode="json")
    changed = [key for key in values if values[key] != others[key]]
    if changed:
        for title, table in ("changed to", values), ("shipped as", others):
            yield from _wrapped(f"{title}: {_keys({key: table[key] for key in changed})}")


def _keys(values: Mapping[str, Any]) -> str:
    known = {key: value for key, value in values.items() if value is not None}
    texts = [*set_arguments(known), *(f"{key}: none" for key in values if key not in known)]
    return ", ".join(texts) or "none"


def _wrapped(text: str) -> list[str]:
    """Indented lines that break between words."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def in_words(cost: Cost, device: str, uses_all_cores: bool) -> str:
    """The costs in one line, as far as they are known."""
    from vcl_radial.runs.progress import duration

    parts = [cost.work] if cost.work else []
    if cost.seconds is not None:
        where = "the GPU" if device == "cuda" else "all cores" if uses_all_cores else "one core"
        parts.append(f"about {duration(cost.seconds)} on {where}")
    if cost.memory is not None:
        parts.append(f"{size(cost.memory)} of memory")
    if cost.disk is not None:
        parts.append(f"{size(cost.disk)} on disk")
    return "; ".join(parts)
