"""A training epoch as `vcl-radial run` executes it, against the floor.

The floor is the same multilayer perceptron with point estimates in a plain PyTorch loop: one tensor
in memory, batches by index, fused AMSGrad. Ours has Avalanche attached and trains the second task,
so that a carried prior is in force.
"""

from __future__ import annotations

from typing import Any

from vcl_radial.bench.setting import Result, Row, Setting, row
from vcl_radial.bench.timing import interleaved, ratios
from vcl_radial.bench.training import Training, floor

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gaussian-vcl": ("gaussian-vcl", {}),
    "radial-vcl": ("radial-vcl", {}),
    "radial-vcl, unit groups": ("radial-vcl", {"grouping": "unit"}),
    "radial-vcl-eq44": ("radial-vcl-eq44", {}),
    "naive": ("naive", {}),
}
"""Method and keys of what is measured; all with the epochs of one call that the paper has."""


def measure(setting: Setting) -> Result:
    """Ratios to the floor, seconds per epoch, and what a task costs beside its epochs."""
    sizes, clock = setting.sizes, setting.clock
    trainings = {
        name: Training(
            method,
            {"epochs": sizes.epochs, **sizes.recipe, **keys},
            setting.images,
            setting.device,
            clock,
        )
        for name, (method, keys) in VARIANTS.items()
    }
    reference = floor(trainings["naive"])
    variants = {"floor": reference.train} | {name: t.train for name, t in trainings.items()}
    seconds = interleaved(variants, setting.repeats, clock)

    rows: list[Row] = []

    def add(variant: str, metric: str, values: list[float]) -> None:
        rows.append(row("step", variant, "", metric, values))

    floor_epochs = [call / sizes.epochs for call in seconds["floor"]]
    add("floor", "seconds per epoch", floor_epochs)
    to_floor, to_gaussian = ratios(seconds, "floor"), ratios(seconds, "gaussian-vcl")
    for name, training in trainings.items():
        counted = slice(-setting.repeats, None)  # the warm-up comes first
        epochs = training.epoch_seconds[counted]
        add(name, "ratio to the floor", to_floor[name])
        add(
            name,
            "the same, epochs alone",
            [ours / theirs for ours, theirs in zip(epochs, floor_epochs, strict=True)],
        )
        if name.startswith("radial"):
            add(name, "ratio to gaussian-vcl", to_gaussian[name])
        add(name, "seconds per epoch", epochs)
        add(name, "fixed seconds per task", training.fixed_seconds[counted])
    return Result(
        rows,
        [
            f"A measured unit is one call of `train()` with {sizes.epochs} epochs; its fixed costs "
            "(batches, heads, optimiser, consolidation) are in the ratio, and given by themselves."
        ],
    )
