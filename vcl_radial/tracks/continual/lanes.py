"""Carrying many runs out as lanes of one program, each in its own folder.

Where runs have one stream, one device and recipes of one shape, they are trained together; the
folders, checkpoints and results are those that each would have alone.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence

from vcl_radial.errors import UserError
from vcl_radial.runs.environment import loaded
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.place import Place
from vcl_radial.tracks.continual.execute import Event, finish, go_on
from vcl_radial.tracks.continual.specification import Run


def batches(runs: Sequence[Run], lanes: int) -> list[list[Run]]:
    """Runs that can go together, at most so many, in the order of the first of each batch."""
    if lanes == 1:
        return [[run] for run in runs]
    from vcl_radial.tracks.continual.lane_runs import shape

    groups: dict[str, list[Run]] = {}
    for number, run in enumerate(runs):
        stream = json.dumps([run.stream.model_dump(), run.evaluate_on])
        of_recipe = shape(run.recipe)
        groups.setdefault(f"{stream}{of_recipe or number}", []).append(run)
    return [g[start : start + lanes] for g in groups.values() for start in range(0, len(g), lanes)]


def execute_lanes(
    runs: Sequence[Run], place: Place, tell: Callable[[Run, Event], None]
) -> list[str | None]:
    """Carry out a batch, going on from the checkpoints that there are; the fault of each run.

    Raises:
        UserError: something the user can mend that concerns them all.
    """
    import torch

    from vcl_radial.tracks.continual.lane_runs import LaneRuns

    loaded()  # as in `execute`, and so is what follows: a batch is a cycle that holds its data
    torch.set_num_threads(place.threads)
    gc.collect()
    recipes = [run.recipe for run in runs]

    def event(lane: int, kind: str, task: int, epoch: int) -> Event:
        accuracy = together.lanes[lane].average_accuracy() if kind == "task" else None
        total = recipes[lane].epochs_until(together.tasks)
        return Event(kind, task, together.tasks, epoch, total, accuracy)  # type: ignore[arg-type]

    def on_epoch(lane: int, task: int, epoch: int) -> None:
        done = recipes[lane].epochs_until(task - 1) + epoch
        tell(runs[lane], event(lane, "epoch", task, done))

    together = LaneRuns(
        runs[0].stream,
        recipes,
        [run.seed for run in runs],
        evaluate_on=runs[0].evaluate_on,
        data_dir=place.data_dir,
        device=place.device,
        on_epoch=on_epoch,
    )
    folders = [RunFolder(place.out, run) for run in runs]
    faults: list[str | None] = [None] * len(runs)
    for lane, (run, folder) in enumerate(zip(runs, folders, strict=True)):
        folder.start()
        own = together.lanes[lane]
        try:
            go_on(folder, own, together.device_name)
        except UserError as error:  # a matter of this run; the others go on
            faults[lane] = str(error)
            together.leave_out(lane)
            continue
        done = own.tasks_done
        tell(run, event(lane, "start", done, run.recipe.epochs_until(done)))
    for finished in together.finish_tasks():
        for lane in finished:
            own = together.lanes[lane]
            folders[lane].save_checkpoint(own.state_dict())
            done = own.tasks_done
            tell(runs[lane], event(lane, "task", done, recipes[lane].epochs_until(done)))
    names = together.stream.task_names
    for lane, folder in enumerate(folders):
        own = together.lanes[lane]
        if own.fault is not None and faults[lane] is None:
            faults[lane] = str(own.fault)
        if faults[lane] is None:
            finish(folder, own, place, names)
    return faults
