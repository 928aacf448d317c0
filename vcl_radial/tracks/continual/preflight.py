"""What is wrong with runs, said before anything heavy is imported and before any run starts.

Names, options and files are looked up in their sources. What only an import or the data can tell is
left to the runs themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vcl_radial import data_files, outside
from vcl_radial.data.streams.known import task_sizes
from vcl_radial.errors import UserError
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.specification import Run
from vcl_radial.tracks.recipe import look_up_method, look_up_parts


def check_runs(runs: Iterable[Run]) -> None:
    """See that what runs name is there, and that their settings fit each other and the data.

    Raises:
        UserError: something is not or does not; names the method or the benchmark, and the mend.
    """
    checked: list[tuple[StreamSettings, Recipe, int | None]] = []
    for run in runs:
        key = run.stream, run.recipe, run.seed if run.stream.varies_with_seed else None
        if key in checked:
            continue
        checked.append(key)
        try:
            smallest = _check_stream(run.stream, run.seed)
        except UserError as error:
            raise UserError(f"{run.benchmark}: {error}") from None
        try:
            check_recipe(run.recipe, run.recipe.likelihood)
            if smallest is not None:
                run.recipe.check_batches(smallest)
            if not outside.is_named(run.stream.kind):
                run.recipe.check_layers(run.stream.heads == "multi")
        except UserError as error:
            raise UserError(f"{run.method}: {error}") from None


def check_recipe(recipe: Recipe, likelihood: str | None = None) -> None:
    """See that what a recipe names is there, and that the strategy takes its options.

    Args:
        recipe: of a run.
        likelihood: that the strategy has to serve, where it is known.

    Raises:
        UserError: it is not, or does not.
    """
    look_up_method(recipe, likelihood)
    look_up_parts(recipe)


def _check_stream(stream: StreamSettings, seed: int) -> int | None:
    """See that a stream can be made; the training points of its smallest task, where known."""
    for key in ("kind", "dataset"):
        if outside.is_named(name := getattr(stream, key)):
            outside.look_up(key, name)
    sizes = task_sizes(stream.model_dump(exclude_none=True, exclude={"data_name"}), seed)
    return None if sizes is None else min(sizes)


def check_data(runs: Iterable[Run], data_dir: Path | None) -> None:
    """See that the files of the runs' data are there.

    Raises:
        UserError: some are not.
    """
    for dataset in sorted({run.stream.dataset for run in runs}):
        data_files.check_data(dataset, data_dir)
