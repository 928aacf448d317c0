"""A task with every method, over the same network and batches fine-tuned (`naive`).

The second task is trained repeatedly from the same state, so that a memory that grows with the
tasks has the same size in every round. Tasks of 12,000 random images. A measured unit is one call
of `train()` with 2 epochs of the second task, from which a task of 20 is reckoned: its epochs, and
what comes once (old outputs, curvature, points to keep, optimiser, consolidation). One weight
sample a step and a prediction left out.

Methods that do not serve classes, and `joint`, which trains on all tasks together, are left out.
"""

from __future__ import annotations

from copy import deepcopy

from benchmarks.speed.data import noise
from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Row, Setting, compare
from benchmarks.speed.timing import Measurement
from benchmarks.speed.training import EPOCH, FIXED, TWO_TASKS, Training
from vcl_radial.errors import UserError
from vcl_radial.runs.catalogue import names

REFERENCE = "naive"
EPOCHS = 20
"""Number of epochs of the task whose cost is reported; a measurement may have fewer."""

TASK, RATIO = f"a task of {EPOCHS} epochs (s)", f"ratio to {REFERENCE}"
PICTURES = (Ratios("methods", f"What a method costs: a task of {EPOCHS} epochs, {RATIO}", RATIO),)


def measure(setting: Setting) -> list[Row]:
    """Seconds of an epoch and outside the epochs, and the sum of both over the sum of `naive`."""
    setting = setting.on(noise(setting.scratch, 4, setting.sizes.method_images, 1))
    work: dict[str, Measurement] = {}
    for name in setting.sizes.methods or names("method"):
        try:
            training = second_task(name, setting)
        except UserError as error:  # its package is not installed, or it does not serve classes
            print(f"  {name}: not measured: {error}")
            continue
        if not training.method.needs_whole_stream:
            work[name] = from_the_same_state(training)
    return compare(work, setting, TASK, reference=REFERENCE, warm_up=0)


def second_task(method: str, setting: Setting) -> Training:
    """A training before its second task."""
    keys = {"train_samples": 1, "hidden": [200], "batch_size": 256, "epochs": 2}
    return Training(method, {**TWO_TASKS, **keys, **setting.sizes.recipe}, setting)


def from_the_same_state(training: Training) -> Measurement:
    """Measure the second task, always from the memory of the same two tasks."""
    training.train()
    state = deepcopy(training.trainer.state_dict())

    def measure() -> dict[str, float]:
        training.trainer.load_state_dict(deepcopy(state))
        seconds = training.train()
        task = EPOCHS * seconds[EPOCH] + seconds[FIXED]
        return {TASK: task, EPOCH: seconds[EPOCH], FIXED: seconds[FIXED]}

    return measure
