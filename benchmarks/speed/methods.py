"""A task with every method, over the same network and batches fine-tuned (`naive`).

The second task is trained again and again from the same state, so that a memory which grows with
the tasks holds as much in every round.
"""

from __future__ import annotations

from copy import deepcopy

from benchmarks.speed.data import noise
from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Images, Result, Row, Setting, row
from benchmarks.speed.timing import interleaved
from benchmarks.speed.training import TWO_TASKS, Training
from vcl_radial.errors import UserError
from vcl_radial.runs.catalogue import names

REFERENCE = "naive"
EPOCHS = 20
"""Of the task whose cost is reported, whatever number was measured."""

RATIO = f"a task of {EPOCHS} epochs, ratio to {REFERENCE}"
PICTURES = (Ratios("methods", f"What a method costs: {RATIO}", RATIO),)


class SecondTask:
    """A training of the second task that always begins with the memory of the same two tasks.

    Args:
        training: whose second task was not trained yet.
    """

    def __init__(self, training: Training) -> None:
        self.training = training
        training.train()
        self._state = deepcopy(training.strategy.state_dict())

    def train(self) -> None:
        """Train it once more."""
        self.training.strategy.load_state_dict(deepcopy(self._state))
        self.training.train()


def measure(setting: Setting) -> Result:
    """Seconds of an epoch and beside the epochs, and both together over those of `naive`."""
    tasks: dict[str, SecondTask] = {}
    notes = [
        f"Tasks of {2 * setting.sizes.method_images:,} random images. A measured unit is one call "
        f"of `train()` with {_epochs(setting)} epochs of the second task, from which a task of "
        f"{EPOCHS} is reckoned: its epochs, and what comes once (old outputs, curvature, points to "
        "keep, optimiser, consolidation). One weight sample a step and a prediction left out."
    ]
    images = noise(setting.scratch / "methods", 4, setting.sizes.method_images, 1)
    for name in setting.sizes.methods or names("method"):
        try:
            training = _training(name, images, setting)
        except UserError as error:  # of a package that is not installed
            notes.append(f"{name}: not measured: {error}")
            continue
        if training.strategy.needs_whole_stream:
            notes.append(f"{name}: not measured, since it trains on all tasks together.")
        else:
            tasks[name] = SecondTask(training)
    interleaved({name: t.train for name, t in tasks.items()}, setting.repeats, warm_up=0)

    rows: list[Row] = []
    reference = _of_a_task(tasks[REFERENCE])
    for name, task in tasks.items():
        ours = _of_a_task(task)
        over = [a / b for a, b in zip(ours, reference, strict=True)]
        epochs, fixed = task.training.epoch_seconds[1:], task.training.fixed_seconds[1:]
        if name != REFERENCE:
            rows.append(row("methods", name, "", RATIO, over))
        rows.append(row("methods", name, "", "seconds per epoch", epochs))
        rows.append(row("methods", name, "", "fixed seconds per task", fixed))
    return Result(rows, notes)


def _training(method: str, images: Images, setting: Setting) -> Training:
    keys = {**TWO_TASKS, "train_samples": 1, **setting.sizes.methods_recipe}
    return Training(method, keys, images, setting.device, setting.clock)


def _epochs(setting: Setting) -> int:
    return int(setting.sizes.methods_recipe["epochs"])


def _of_a_task(task: SecondTask) -> list[float]:
    """Seconds of a task of `EPOCHS` epochs, in each round that counts."""
    training = task.training
    parts = zip(training.epoch_seconds[1:], training.fixed_seconds[1:], strict=True)
    return [EPOCHS * epoch + fixed for epoch, fixed in parts]
