"""A prediction by outputs of the first layer, against one by draws of all weights.

Both are means of probabilities over draws, and have one expectation and, for an image by itself,
one variance. They differ in the correlation of images, and so in the spread of a mean over images
(see `vcl_radial.nn.shared_inputs`), which is measured over seeds of the draws. The first way with
products in bfloat16, which no `run` uses, is shown too: it moves the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Result, Row, Setting, rows_of
from benchmarks.speed.timing import Table, interleaved, ratios
from benchmarks.speed.training import Training
from vcl_radial.metrics import accuracy, nll

DRAWN, BFLOAT16 = "all weights drawn", "products in bfloat16"
RATIO = f"ratio to {DRAWN}"
PICTURES = (Ratios("prediction", "A prediction without draws of the first layer", RATIO),)


def measure(setting: Setting) -> Result:
    """Seconds of a prediction both ways, how far they are apart, and their spreads."""
    sizes = setting.sizes
    keys = {"epochs": sizes.prediction_epochs, **sizes.recipe}
    rows: list[Row] = []
    for method in ("radial-vcl", "gaussian-vcl"):
        training = Training(method, keys, setting.images, setting)
        training.train()
        rows += rows_of("prediction", _compared(method, training.strategy, setting))
    note = (
        "The test images of the second task after its training. Apart: the mean over images of "
        f"|p - p'|, with p and p' means over {sizes.prediction_seeds} seeds of the draws, p' with "
        "all weights drawn; by chance: the same of the first and the second half of a way's seeds, "
        "over sqrt(2). Spreads are standard deviations over the seeds."
    )
    return Result(rows, [note])


def _compared(method: str, strategy: Any, setting: Setting) -> Table:
    trained, stream = strategy.method, strategy.tensor_stream
    x, y, head = stream.inputs(1, "test"), stream.labels(1, "test"), stream.task_label(1)

    def in_bfloat16() -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            log_probabilities: Tensor = trained.predict(x, head)
        return log_probabilities.float()

    drawn = f"{method}, {DRAWN}"
    ways: dict[str, Callable[[], Tensor]] = {
        drawn: lambda: trained.likelihood.predictive(trained.draws(x, head)),
        method: lambda: trained.predict(x, head),
        f"{method}, {BFLOAT16}": in_bfloat16,
    }
    seconds = interleaved(ways, setting.repeats, setting.clock)
    table: Table = {"seconds": seconds, RATIO: ratios(seconds, drawn)}
    probabilities: dict[str, Tensor] = {}
    for way, predict in ways.items():
        predictions = []
        for trained.eval_seed in range(1, 1 + setting.sizes.prediction_seeds):
            predictions.append(predict())
        for name, score in (("accuracy (points)", accuracy), ("NLL (nats)", nll)):
            scores = torch.tensor([float(score(p, y)) for p in predictions], dtype=torch.float64)
            table.setdefault(f"mean {name}", {})[way] = [float(scores.mean())]
            table.setdefault(f"spread of the {name}", {})[way] = [float(scores.std())]
        p = probabilities[way] = torch.stack(predictions).exp()
        by_chance = _apart(*p.chunk(2)) / math.sqrt(2)
        table.setdefault("apart by chance (%)", {})[way] = [by_chance]
        if way != drawn:
            table.setdefault("apart (%)", {})[way] = [_apart(probabilities[drawn], p)]
    return table


def _apart(first: Tensor, second: Tensor) -> float:
    """Mean |p - p'| of two sets of predictions `[seeds, n, C]`, in per cent."""
    return 100 * float((first.mean(0) - second.mean(0)).abs().mean())
