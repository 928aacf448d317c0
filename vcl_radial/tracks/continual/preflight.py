"""Checks of runs before any of them starts: streams, data files, methods and their options."""

from __future__ import annotations

from collections.abc import Iterable

from vcl_radial.config import outside
from vcl_radial.data.streams.known import task_sizes
from vcl_radial.errors import UserError, raise_together
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.specification import Run
from vcl_radial.tracks.recipe import check_recipe


def check_runs(runs: Iterable[Run]) -> None:
    """Check that all parts of runs exist, and that settings fit each other and the data.

    Raises:
        UserError: a check fails; the message names the benchmark or each method, and the fix.
    """
    faults: list[str] = []
    checked: list[tuple[StreamSettings, Recipe, int | None]] = []
    for run in runs:
        key = run.stream, run.recipe, run.seed if run.stream.varies_with_seed else None
        if key in checked:
            continue
        checked.append(key)
        try:
            smallest = _check_stream(run.stream, run.seed)
        except UserError as error:
            raise UserError(str(error), run.benchmark) from None
        try:
            if smallest is not None:
                run.recipe.check_batches(smallest)
            if not outside.is_named(run.stream.kind):
                run.recipe.check_layers(run.stream.heads == "multi")
            check_recipe(run.recipe, run.recipe.likelihood)
        except UserError as error:
            faults.append(f"{run.method}: {error}")
    raise_together(faults)


def _check_stream(stream: StreamSettings, seed: int) -> int | None:
    """Check that a stream can be made; return the points of its smallest task, if known."""
    for key in ("kind", "dataset"):
        if outside.is_named(name := getattr(stream, key)):
            outside.find(key, name)
    sizes = task_sizes(stream.model_dump(exclude_none=True, exclude={"data_name"}), seed)
    return None if sizes is None else min(sizes)
