"""Carrying units out: finished ones are kept, the others done in bundles, in worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from vcl_radial.runs.folder import make_folder
from vcl_radial.runs.supervisor import Report, carry_out, workers
from vcl_radial.tracks.regression.units import Score, Unit, bundles, read_result, write_result

_TOLD_EVERY = 2.0
"""Seconds between two words of a worker on how far it has come."""


def perform(
    units: Sequence[Unit],
    out: Path,
    data_dir: Path | None,
    *,
    jobs: int,
    lanes: int,
    title: str,
) -> None:
    """Carry out what is not finished yet; each bundle's results are there as soon as it is done.

    Args:
        units: all of them.
        out: the folder of the results.
        data_dir: see `vcl_radial.tracks.regression.data`.
        jobs: worker processes.
        lanes: at most so many in one program.
        title: said with the progress.

    Raises:
        UserError: something the user can mend; what was finished stays.
    """
    make_folder(out)
    todo = [unit for unit in units if read_result(unit, out) is None]
    console = Console(highlight=False, soft_wrap=True)
    kept = f", {len(units) - len(todo)} kept from before" if len(todo) < len(units) else ""
    console.print(f"{title}: {len(todo)} units to do{kept}", markup=False)
    # The long ones first, so that no worker is left alone with one at the end.
    work = sorted(bundles(todo, lanes), key=lambda bundle: -_cost(bundle))
    started = time.monotonic()
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        whole = bar.add_task(title, total=sum(map(_cost, work)) or 1.0)
        shares = [0.0] * len(work)

        def on_report(k: int, share: float) -> None:
            further = max(0.0, share - shares[k])  # a bundle that is done again begins at 0
            bar.advance(whole, further * _cost(work[k]))
            shares[k] += further

        do = partial(_do, work=work, out=out, data_dir=data_dir)
        bundles_done = carry_out(do, range(len(work)), workers(jobs, work), on_report)
        for done, ended in enumerate(bundles_done, start=1):
            _ = ended.result
            on_report(ended.job, 1.0)
            minutes = (time.monotonic() - started) / 60
            console.print(
                f"{_words(work[ended.job])}  [{done} of {len(work)}, {minutes:.1f} min]",
                markup=False,
            )


def execute(
    bundle: Sequence[Unit], out: Path, data_dir: Path | None, on_step: Callable[[int], None]
) -> None:
    """Train the units of a bundle as lanes of one program, score them and write their results."""
    import torch

    from vcl_radial.runs import environment
    from vcl_radial.tracks.regression.data import load_data
    from vcl_radial.tracks.regression.sequence import train_in_sequence
    from vcl_radial.tracks.regression.track import train_and_score

    torch.set_num_threads(1)
    unit = bundle[0]
    data = load_data(unit.set, data_dir)
    described = environment.describe("cpu", 1)  # the commit, before anybody makes another
    started = time.perf_counter()
    if unit.slices is None:
        lanes = [(split, own.recipe) for own in bundle for split in own.splits]
        found = train_and_score(
            data,
            [split for split, _ in lanes],
            [recipe for _, recipe in lanes],
            unit.seed,
            unit.validation,
            on_step,
        )
        in_slices = [[(0, scores)] for scores in found]
    else:
        after = train_in_sequence(data, unit.splits, unit.recipe, unit.slices, unit.seed, on_step)
        in_slices = [list(enumerate(of_lane, start=1)) for of_lane in after]
    seconds = (time.perf_counter() - started) / len(in_slices)
    of_lanes = iter(in_slices)
    for own in bundle:
        scores = [
            Score(split, number, metric, value)
            for split in own.splits
            for number, by_metric in next(of_lanes)
            for metric, value in by_metric.items()
        ]
        write_result(own, out, scores, described | {"seconds": seconds * len(own.splits)})


def _do(
    k: int, report: Report, work: Sequence[Sequence[Unit]], out: Path, data_dir: Path | None
) -> None:
    execute(work[k], out, data_dir, _share_of(work[k], report))


def _share_of(bundle: Sequence[Unit], report: Report) -> Callable[[int], None]:
    """From steps made to shares of a bundle, reported every few seconds."""
    last = time.monotonic()

    def on_step(steps: int) -> None:
        nonlocal last
        if time.monotonic() - last > _TOLD_EVERY:
            last = time.monotonic()
            report(min(1.0, steps / bundle[0].steps))

    return on_step


def _cost(bundle: Sequence[Unit]) -> float:
    """Roughly, in units of a step's fixed cost."""
    unit = bundle[0]
    lanes = sum(len(own.splits) for own in bundle)
    if unit.recipe.method == "linear":
        return 1.0
    members = unit.recipe.members if unit.recipe.method == "ensemble" else 1
    rows = lanes * members * unit.recipe.batch_size * unit.recipe.train_samples
    slow = 6.0 if unit.recipe.posterior == "rdp" else 1.0
    return unit.steps * (slow + rows / 4000)


def _words(bundle: Sequence[Unit]) -> str:
    unit = bundle[0]
    names = ", ".join(dict.fromkeys(own.method for own in bundle))
    lanes = sum(len(own.splits) for own in bundle)
    what = unit.evaluate_on if unit.slices is None else f"slices: {unit.slices}"
    return f"{unit.set}  {names}  {what}  {lanes} lanes"
