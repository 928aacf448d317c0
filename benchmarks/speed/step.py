"""A training step over that of fine-tuning (`naive`), at small batches and large ones.

Every variant is trained as `vcl-radial run` trains it: Avalanche is attached, and the second task
has a carried prior. The floor of the paper's recipe is its network with point estimates in a plain
PyTorch loop: one tensor in memory, batches by index, fused AMSGrad.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Result, Row, Setting, rows_of
from benchmarks.speed.timing import Measurement, Table, measure_in_turn, ratios, timed
from benchmarks.speed.training import FIXED, STEP, Training, floor
from vcl_radial import native

FLOOR, REFERENCE, GAUSSIAN = "floor", "naive", "gaussian-vcl"
RATIO = f"ratio to {REFERENCE}"
PICTURES = (Ratios("step", f"One training step, {RATIO}", RATIO),)

Variants = Mapping[str, tuple[str, dict[str, Any]]]

VARIANTS: Variants = {
    REFERENCE: ("naive", {}),
    GAUSSIAN: ("gaussian-vcl", {}),
    "radial-vcl": ("radial-vcl", {"grouping": "layer"}),
    "radial-vcl, unit groups": ("radial-vcl", {"grouping": "unit"}),
    "low-rank-vcl, rank 8": (GAUSSIAN, {"posterior": "low-rank", "rank": 8}),
    "radial-low-rank-vcl, rank 8": ("radial-vcl", {"posterior": "radial-low-rank", "rank": 8}),
}
"""Method and keys of each variant; low rank uses the recipes of mean-field, tuned ones too."""

WIDE: Variants = {
    "low-rank-vcl, rank 32": (GAUSSIAN, {"posterior": "low-rank", "rank": 32}),
    "radial-low-rank-vcl, rank 32": ("radial-vcl", {"posterior": "radial-low-rank", "rank": 32}),
}
"""Variants with far more expensive steps, measured only in the largest batches."""

_ADAM = {"optimizer": "adam"}
"""The tuned VCL has Adam, so it is compared with `naive` by Adam, tuned by AMSGrad."""


def measure(setting: Setting) -> Result:
    """Seconds per step, their ratios, and what a task costs beside its epochs."""
    rows: list[Row] = []
    batches = setting.sizes.step_batches
    for batch in batches:
        variants = {**VARIANTS, **(WIDE if batch == max(batches) else {})}
        rows += _rows({"batch_size": batch}, variants, setting)
    rows += _rows(_ADAM, VARIANTS, setting, tuned=True)
    note = (
        "Batches: of the paper's recipe, four hidden layers of 200. Tuned: that of `--tuned`, "
        "one hidden layer of 1,000 units, all with Adam. Fixed seconds are those of a task "
        "beside its epochs (batches, heads, optimiser, consolidation), in no ratio."
    )
    return Result(rows, [note, compiled_pass(setting.device)])


def _rows(
    keys: dict[str, Any], variants: Variants, setting: Setting, *, tuned: bool = False
) -> list[Row]:
    """The table of one recipe; a tuned one has no floor."""
    trainings = {
        name: Training(
            method,
            {**setting.sizes.recipe, **keys, **variant_keys},
            setting.images,
            setting,
            tuned=tuned,
        )
        for name, (method, variant_keys) in variants.items()
    }
    for training in trainings.values():
        training.fill(setting.sizes.unit_seconds)
    work: dict[str, Measurement] = {name: t.train for name, t in trainings.items()}
    if not tuned:
        plain = floor(trainings[REFERENCE])
        plain.train()
        work[FLOOR] = timed(plain.train, setting.clock, STEP, plain.steps)
    table = measure_in_turn(work, setting.repeats)
    metrics = with_ratios(table[STEP])
    if not tuned:
        metrics["ratio to the floor"] = ratios(table[STEP], FLOOR)
    metrics[FIXED] = table[FIXED]
    batch = trainings[REFERENCE].recipe.batch_size
    return rows_of("step", metrics, f"{'tuned, ' * tuned}batch={batch}")


def with_ratios(seconds: dict[str, list[float]]) -> Table:
    """Seconds per step, their ratio to `naive`, and that of posteriors to the Gaussian one."""
    to_gaussian = ratios(seconds, GAUSSIAN)
    return {
        STEP: seconds,
        RATIO: ratios(seconds, REFERENCE),
        f"ratio to {GAUSSIAN}": {
            k: ratio for k, ratio in to_gaussian.items() if k.startswith(("radial", "low-rank"))
        },
    }


def compiled_pass(device: str) -> str:
    """A note whether the compiled pass makes the steps of Bayesian networks."""
    reason = "it works on a CPU" if device == "cuda" else native.unavailable()
    if reason is None:
        return "The compiled pass (KL's gradient, Adam, next scale) was in use."
    return f"The compiled pass was not in use ({reason}): PyTorch did its work."
