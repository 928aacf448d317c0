"""A training step over that of fine-tuning (`naive`), at small batches and large ones.

Every variant is trained as `vcl-radial run` trains it: the second task has a carried prior.
Batches: of the paper's recipe, four hidden layers of 200. Tuned: that of `--tuned`, one hidden
layer of 1,000 units, all with Adam.

The floor of the paper's recipe is its network with point estimates in a plain PyTorch loop: one
tensor in memory, batches by index, fused AMSGrad.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Keys, Row, Setting, compare
from benchmarks.speed.timing import Measurement, timed
from benchmarks.speed.training import STEP, Training, floor

REFERENCE = "naive"
RATIO = f"ratio to {REFERENCE}"
PICTURES = (Ratios("step", f"One training step, {RATIO}", RATIO),)

VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "naive": ("naive", {}),
    "gaussian-vcl": ("gaussian-vcl", {}),
    "radial-vcl": ("radial-vcl", {"grouping": "layer"}),
    "radial-vcl, unit groups": ("radial-vcl", {"grouping": "unit"}),
    "low-rank-vcl, rank 8": ("gaussian-vcl", {"posterior": "low-rank", "rank": 8}),
    "radial-low-rank-vcl, rank 8": ("radial-vcl", {"posterior": "radial-low-rank", "rank": 8}),
}
"""Method and keys of each variant; low rank uses the recipes of mean-field, also when tuned."""


def measure(setting: Setting) -> list[Row]:
    """Seconds per step, and their ratios."""
    rows: list[Row] = []
    for batch in setting.sizes.step_batches:
        rows += _rows({"batch_size": batch}, setting)
    # The tuned VCL has Adam, so it is compared with `naive` by Adam, tuned by AMSGrad.
    return rows + _rows({"optimizer": "adam"}, setting, tuned=True)


def _rows(keys: Keys, setting: Setting, *, tuned: bool = False) -> list[Row]:
    """The rows of one recipe; a tuned one has no floor."""
    keys, seconds = {**setting.sizes.recipe, **keys}, setting.sizes.unit_seconds
    trainings = {
        name: Training(method, {**keys, **more}, setting, tuned=tuned).fill(seconds)
        for name, (method, more) in VARIANTS.items()
    }
    work: dict[str, Measurement] = {name: t.step for name, t in trainings.items()}
    if not tuned:
        plain = floor(trainings[REFERENCE])
        plain.train()  # a warm-up, as `fill` is for the others
        work["floor"] = timed(plain.train, setting.clock, STEP, plain.steps)
    size = f"{'tuned, ' * tuned}batch={trainings[REFERENCE].recipe.batch_size}"
    return compare(work, setting, STEP, reference=REFERENCE, size=size, warm_up=0)
