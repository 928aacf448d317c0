"""What runs on tables would cost, from a few steps of splits that train together.

The time of a step is the difference between two short trainings, and the rest of a training is what
does not depend on the number of steps: its start, a pass over the rows, and its scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from vcl_radial.models.format import size_of
from vcl_radial.runs.track import Cost
from vcl_radial.system.memory import peak, reset_peak
from vcl_radial.system.processor import clock
from vcl_radial.tracks.regression.execute import TableRuns, check_data
from vcl_radial.tracks.regression.models import kept
from vcl_radial.tracks.regression.settings import Run

_STEPS = 10, 60


def costs(
    groups: Sequence[Sequence[Run]], data_dir: Path | None, device: str, lanes: int
) -> Iterator[Cost]:
    """Steps, time, memory and model of one run of each group.

    Args:
        groups: runs that differ only in the split.
        data_dir: the folder of the data.
        device: "cpu".
        lanes: most splits that train as one program.

    Raises:
        UserError: the data cannot be read, or do not have the splits.
    """
    for group in groups:
        first = group[0]
        data = check_data(first.data, data_dir, [run.seed for run in group])
        together = group[:lanes] if first.is_lane else group[:1]
        reset_peak(device)
        seconds: list[float] = []
        for steps in _STEPS:
            recipe = first.recipe.model_copy(update={"steps": steps})
            short = [run.model_copy(update={"recipe": recipe}) for run in together]
            started = clock(device)
            training = TableRuns(short, data, lambda lane, step: None)
            for _ in training.steps():
                pass
            seconds.append((clock(device) - started) / len(together))
        slices = max(1, first.data.slices or 1)
        step = max(0.0, (seconds[1] - seconds[0]) / (slices * (_STEPS[1] - _STEPS[0])))
        rest = max(0.0, seconds[0] - step * slices * _STEPS[0])
        model = kept(training.lanes[0])
        yield Cost(
            f"{first.steps:,} steps of {first.recipe.batch_size}",
            rest + step * first.steps,
            peak(device),
            None if model is None else size_of(model[1]),
        )
