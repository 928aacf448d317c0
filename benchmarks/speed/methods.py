"""A task with every method, over the same network and batches fine-tuned (`naive`).

The second task is trained repeatedly from the same state, so that a memory that grows with the
tasks has the same size in every round.
"""

from __future__ import annotations

from copy import deepcopy

from benchmarks.speed.data import noise
from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Images, Result, Setting, rows_of
from benchmarks.speed.timing import Measurement, measure_in_turn, ratios
from benchmarks.speed.training import EPOCH, FIXED, TWO_TASKS, Training
from vcl_radial.errors import UserError
from vcl_radial.runs.catalogue import names

REFERENCE = "naive"
EPOCHS = 20
"""Number of epochs of the task whose cost is reported; fewer may be measured."""

RATIO = f"a task of {EPOCHS} epochs, ratio to {REFERENCE}"
PICTURES = (Ratios("methods", f"What a method costs: {RATIO}", RATIO),)


def measure(setting: Setting) -> Result:
    """Seconds of an epoch and beside the epochs, and both together over those of `naive`."""
    sizes = setting.sizes
    notes = [
        f"Tasks of {2 * sizes.method_images:,} random images. A measured unit is one call of "
        f"`train()` with {sizes.methods_recipe['epochs']} epochs of the second task, from which a "
        f"task of {EPOCHS} is reckoned: its epochs, and what comes once (old outputs, curvature, "
        "points to keep, optimiser, consolidation). One weight sample a step and a prediction left "
        "out."
    ]
    images = noise(setting.scratch / "methods", 4, sizes.method_images, 1)
    work: dict[str, Measurement] = {}
    for name in sizes.methods or names("method"):
        try:
            training = second_task(name, images, setting)
        except UserError as error:  # its package is not installed
            notes.append(f"{name}: not measured: {error}")
            continue
        if training.strategy.needs_whole_stream:
            notes.append(f"{name}: not measured, since it trains on all tasks together.")
        else:
            work[name] = from_the_same_state(training)
    table = measure_in_turn(work, setting.repeats)
    parts = {name: zip(table[EPOCH][name], table[FIXED][name], strict=True) for name in work}
    tasks = {name: [EPOCHS * epoch + fixed for epoch, fixed in of] for name, of in parts.items()}
    metrics = {RATIO: ratios(tasks, REFERENCE), EPOCH: table[EPOCH], FIXED: table[FIXED]}
    return Result(rows_of("methods", metrics), notes)


def second_task(method: str, images: Images, setting: Setting) -> Training:
    """A training before its second task."""
    keys = {**TWO_TASKS, "train_samples": 1, **setting.sizes.methods_recipe}
    return Training(method, keys, images, setting)


def from_the_same_state(training: Training) -> Measurement:
    """Measure the second task, always from the memory of the same two tasks."""
    training.train()
    state = deepcopy(training.strategy.state_dict())

    def measure() -> dict[str, float]:
        training.strategy.load_state_dict(deepcopy(state))
        return training.train()

    return measure
