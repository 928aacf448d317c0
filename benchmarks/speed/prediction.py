"""A prediction by outputs of the first layer, against one by draws of all weights.

Both are means of probabilities over draws, and have one expectation and, for an image by itself,
one variance. What differs is how images go together, and with it the spread of a mean over images
(see `vcl_radial.nn.shared_inputs`): that over seeds of the draws is measured here, too. Beside them
stands the first way with products in bfloat16, which no `run` uses: it moves the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Result, Row, Setting, row
from benchmarks.speed.timing import interleaved, ratios
from benchmarks.speed.training import Training
from vcl_radial.metrics import accuracy, nll

NAME = "prediction"
METHODS = ("radial-vcl", "gaussian-vcl")
DRAWN, BFLOAT16 = "all weights drawn", "products in bfloat16"
RATIO = f"ratio to {DRAWN}"
PICTURES = (Ratios(NAME, "A prediction without draws of the first layer", RATIO),)


def measure(setting: Setting) -> Result:
    """Seconds of a prediction both ways, how far they are apart, and their spreads."""
    sizes, seeds = setting.sizes, setting.sizes.prediction_seeds
    keys = {"epochs": sizes.epochs, **sizes.recipe}
    rows: list[Row] = []
    for method in METHODS:
        training = Training(method, keys, setting.images, setting.device, setting.clock)
        training.train()
        rows += _rows(method, training.strategy, setting)
    return Result(
        rows,
        [
            "The test images of the second task after its training. Apart: the mean over images of "
            f"|p - p'|, with p and p' means over {seeds} seeds of the draws, p' with all weights "
            "drawn; by chance: the same of the first and the second half of a way's seeds, over "
            "sqrt(2). Spreads are standard deviations over the seeds."
        ],
    )


def _rows(method: str, strategy: Any, setting: Setting) -> list[Row]:
    trained, stream = strategy.method, strategy.tensor_stream
    x, y, head = stream.inputs(1, "test"), stream.labels(1, "test"), stream.task_label(1)
    drawn, bfloat16 = f"{method}, {DRAWN}", f"{method}, {BFLOAT16}"

    def in_bfloat16() -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            log_probabilities: Tensor = trained.predict(x, head)
        return log_probabilities.float()

    ways: dict[str, Callable[[], Tensor]] = {
        drawn: lambda: trained.likelihood.predictive(trained.draws(x, head)),
        method: lambda: trained.predict(x, head),
        bfloat16: in_bfloat16,
    }
    seconds = interleaved(ways, setting.repeats, setting.clock)
    to_drawn = ratios(seconds, drawn)
    rows = [row(NAME, way, "", "seconds", times) for way, times in seconds.items()]
    rows += [row(NAME, way, "", RATIO, to_drawn[way]) for way in (method, bfloat16)]
    probabilities: list[Tensor] = []
    for way, predict in ways.items():
        predictions = []
        for trained.eval_seed in range(1, 1 + setting.sizes.prediction_seeds):
            predictions.append(predict())
        for metric, score in (("accuracy (points)", accuracy), ("NLL (nats)", nll)):
            scores = torch.tensor([float(score(p, y)) for p in predictions], dtype=torch.float64)
            rows.append(row(NAME, way, "", f"mean {metric}", [float(scores.mean())]))
            rows.append(row(NAME, way, "", f"spread of the {metric}", [float(scores.std())]))
        probabilities.append(torch.stack(predictions).exp())
        by_chance = _apart(*probabilities[-1].chunk(2)) / math.sqrt(2)
        rows.append(row(NAME, way, "", "apart by chance (%)", [by_chance]))
    for way, of_way in zip((method, bfloat16), probabilities[1:], strict=True):
        rows.append(row(NAME, way, "", "apart (%)", [_apart(probabilities[0], of_way)]))
    return rows


def _apart(one: Tensor, other: Tensor) -> float:
    """Mean |p - p'| of two sets of predictions `[seeds, n, C]`, in per cent."""
    return 100 * float((one.mean(0) - other.mean(0)).abs().mean())
