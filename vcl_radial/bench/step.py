"""A training epoch against the floor, the same network without any of this suite.

The floor is the same multilayer perceptron with point estimates in a plain PyTorch loop: one tensor
in memory, batches by index, fused AMSGrad. Ours is as `vcl-radial run` executes it: it has
Avalanche attached and trains the second task, so that a carried prior is in force. Where ours
multiplies in bfloat16, a floor that does so too stands beside the other.
"""

from __future__ import annotations

from typing import Any

from vcl_radial import native
from vcl_radial.bench.pictures import Ratios
from vcl_radial.bench.setting import Result, Row, Setting, row
from vcl_radial.bench.timing import interleaved, ratios
from vcl_radial.bench.training import Training, floor

FLOOR, BFLOAT16_FLOOR = "floor", "floor, bfloat16"
RATIO = "ratio to the floor"
PICTURES = (Ratios("step", f"One training epoch, {RATIO}", RATIO),)

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gaussian-vcl": ("gaussian-vcl", {}),
    "radial-vcl": ("radial-vcl", {}),
    "radial-vcl, unit groups": ("radial-vcl", {"grouping": "unit"}),
    "radial-vcl-eq44": ("radial-vcl-eq44", {}),
    "naive": ("naive", {}),
    "gaussian-vcl, bfloat16": ("gaussian-vcl", {"precision": "bfloat16"}),
    "radial-vcl, bfloat16": ("radial-vcl", {"precision": "bfloat16"}),
}
"""Method and keys of what is measured; all with the epochs of one call that the paper has."""


def measure(setting: Setting) -> Result:
    """Ratios to the floors, seconds per epoch, and what a task costs beside its epochs."""
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
    floors = {
        FLOOR: floor(trainings["naive"]),
        BFLOAT16_FLOOR: floor(trainings["gaussian-vcl, bfloat16"]),
    }
    variants = {name: loop.train for name, loop in floors.items()}
    variants |= {name: t.train for name, t in trainings.items()}
    seconds = interleaved(variants, setting.repeats, clock)

    rows: list[Row] = []

    def add(variant: str, metric: str, values: list[float]) -> None:
        rows.append(row("step", variant, "", metric, values))

    floor_epochs = {name: [call / sizes.epochs for call in seconds[name]] for name in floors}
    to_floor, to_bfloat16 = ratios(seconds, FLOOR), ratios(seconds, BFLOAT16_FLOOR)
    to_gaussian = ratios(seconds, "gaussian-vcl")
    for name, epochs in floor_epochs.items():
        add(name, "seconds per epoch", epochs)
    add(BFLOAT16_FLOOR, RATIO, to_floor[BFLOAT16_FLOOR])
    for name, training in trainings.items():
        counted = slice(-setting.repeats, None)  # the warm-up comes first
        epochs = training.epoch_seconds[counted]
        add(name, RATIO, to_floor[name])
        add(
            name,
            "the same, epochs alone",
            [ours / theirs for ours, theirs in zip(epochs, floor_epochs[FLOOR], strict=True)],
        )
        if training.recipe.precision == "bfloat16":
            add(name, "ratio to the bfloat16 floor", to_bfloat16[name])
        elif name.startswith("radial"):
            add(name, "ratio to gaussian-vcl", to_gaussian[name])
        add(name, "seconds per epoch", epochs)
        add(name, "fixed seconds per task", training.fixed_seconds[counted])
    return Result(
        rows,
        [
            f"A measured unit is one call of `train()` with {sizes.epochs} epochs; its fixed costs "
            "(batches, heads, optimiser, consolidation) are in the ratio, and given by themselves.",
            compiled_pass(setting.device),
        ],
    )


def compiled_pass(device: str) -> str:
    """Whether the compiled pass makes the steps of Bayesian networks, in words."""
    reason = "it works on a CPU" if device == "cuda" else native.unavailable()
    if reason is None:
        return "The compiled pass (KL's gradient, Adam, next scale) was in use."
    return f"The compiled pass was not in use ({reason}): PyTorch did its work."
