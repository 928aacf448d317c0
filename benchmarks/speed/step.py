"""A training step over that of fine-tuning (`naive`), at small batches and large ones.

Every variant is trained as `vcl-radial run` trains it: Avalanche is attached, and the second task
has a carried prior. Beside the paper's recipe stands the floor, its network with point estimates in
a plain PyTorch loop: one tensor in memory, batches by index, fused AMSGrad.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Result, Row, Setting, row
from benchmarks.speed.timing import ratios
from benchmarks.speed.training import Loop, Training, floor, step_seconds
from vcl_radial import native

FLOOR, REFERENCE, GAUSSIAN = "floor", "naive", "gaussian-vcl"
SECONDS = "seconds per step"
RATIO = f"ratio to {REFERENCE}"
PICTURES = (Ratios("step", f"One training step, {RATIO}", RATIO),)

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    REFERENCE: ("naive", {}),
    GAUSSIAN: ("gaussian-vcl", {}),
    "radial-vcl": ("radial-vcl", {"grouping": "layer"}),
    "radial-vcl, unit groups": ("radial-vcl", {"grouping": "unit"}),
    "low-rank-vcl, rank 8": (GAUSSIAN, {"posterior": "low-rank", "rank": 8}),
    "radial-low-rank-vcl, rank 8": ("radial-vcl", {"posterior": "radial-low-rank", "rank": 8}),
}
"""Method and keys of what is measured; low rank in the recipes of mean-field, tuned ones too."""

WIDE: dict[str, tuple[str, dict[str, Any]]] = {
    "low-rank-vcl, rank 32": (GAUSSIAN, {"posterior": "low-rank", "rank": 32}),
    "radial-low-rank-vcl, rank 32": ("radial-vcl", {"posterior": "radial-low-rank", "rank": 32}),
}
"""Those whose step costs many times the others': in the largest batches alone, which are few."""

_ADAM = {"optimizer": "adam"}
"""The tuned VCL has Adam and the tuned `naive` AMSGrad; a step is compared with one of its kind."""


def measure(setting: Setting) -> Result:
    """Seconds per step, their ratios, and what a task costs beside its epochs."""
    rows: list[Row] = []
    for batch in setting.sizes.step_batches:
        wide = WIDE if batch == max(setting.sizes.step_batches) else {}
        rows += _rows({"batch_size": batch}, VARIANTS | wide, setting)
    rows += _rows(_ADAM, VARIANTS, setting, tuned=True)
    return Result(
        rows,
        [
            "Batches: of the paper's recipe, four hidden layers of 200. Tuned: that of `--tuned`, "
            "one hidden layer of 1,000 units, all with Adam. Fixed seconds are those of a task "
            "beside its epochs (batches, heads, optimiser, consolidation), in no ratio.",
            compiled_pass(setting.device),
        ],
    )


def _rows(
    keys: Mapping[str, Any],
    variants: Mapping[str, tuple[str, dict[str, Any]]],
    setting: Setting,
    *,
    tuned: bool = False,
) -> list[Row]:
    """The table of one recipe; the floor is left out where it is a tuned one."""
    sizes, clock, repeats = setting.sizes, setting.clock, setting.repeats
    trainings = {
        name: Training(
            method,
            {**sizes.recipe, **keys, **of_variant},
            setting.images,
            setting.device,
            clock,
            tuned=tuned,
        )
        for name, (method, of_variant) in variants.items()
    }
    for training in trainings.values():
        training.fill(sizes.unit_seconds)
    loops: dict[str, Loop] = {**trainings}
    reference = trainings[REFERENCE]
    if not tuned:
        loops[FLOOR] = plain = floor(reference)
        plain.epochs = reference.strategy.train_epochs
        plain.train()
    size = f"{'tuned, ' * tuned}batch={reference.recipe.batch_size}"
    seconds = step_seconds(loops, repeats, clock)
    rows = ratio_rows("step", size, seconds)
    if FLOOR in seconds:
        to_floor = ratios(seconds, FLOOR)
        rows += [row("step", name, size, "ratio to the floor", of) for name, of in to_floor.items()]
    return rows + [
        row("step", name, size, "fixed seconds per task", training.fixed_seconds[-repeats:])
        for name, training in trainings.items()
    ]


def ratio_rows(section: str, size: str, seconds: Mapping[str, list[float]]) -> list[Row]:
    """Seconds per step, their ratio to `naive`, and that of posteriors to the Gaussian one."""
    rows = [row(section, name, size, SECONDS, of) for name, of in seconds.items()]
    to_naive, to_gaussian = ratios(seconds, REFERENCE), ratios(seconds, GAUSSIAN)
    rows += [row(section, name, size, RATIO, of) for name, of in to_naive.items()]
    return rows + [
        row(section, name, size, f"ratio to {GAUSSIAN}", of)
        for name, of in to_gaussian.items()
        if name.startswith(("radial", "low-rank"))
    ]


def compiled_pass(device: str) -> str:
    """Whether the compiled pass makes the steps of Bayesian networks, in words."""
    reason = "it works on a CPU" if device == "cuda" else native.unavailable()
    if reason is None:
        return "The compiled pass (KL's gradient, Adam, next scale) was in use."
    return f"The compiled pass was not in use ({reason}): PyTorch did its work."
