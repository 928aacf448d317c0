"""A prediction by outputs of the first layer, against one by draws of all weights.

Both are means of probabilities over draws, and have one expectation and, for an image by itself,
one variance. They differ in the correlation of images, and so in the spread of a mean over images
(see `vcl_radial.nn.shared_inputs`). The first way with products in bfloat16, which no `run` uses,
is shown too: it moves the mean.

The test images of the second task after its training. Means and spreads (standard deviations) are
over 12 seeds of the draws.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Row, Setting, compare, rows_of
from benchmarks.speed.timing import timed
from benchmarks.speed.training import Training
from vcl_radial.metrics import nll

DRAWN, BFLOAT16 = "all weights drawn", "products in bfloat16"
RATIO, SECONDS = f"ratio to {DRAWN}", "seconds"
PICTURES = (Ratios("prediction", "A prediction without draws of the first layer", RATIO),)


def measure(setting: Setting) -> list[Row]:
    """Seconds and mean NLL of a prediction each way."""
    keys = {"epochs": setting.sizes.prediction_epochs, **setting.sizes.recipe}
    rows: list[Row] = []
    for method in ("radial-vcl", "gaussian-vcl"):
        training = Training(method, keys, setting)
        training.train()
        rows += _compared(method, training, setting)
    return rows


def _compared(method: str, training: Training, setting: Setting) -> list[Row]:
    trained, stream = training.method, training.stream
    x, y, head = stream.inputs(1, "test"), stream.labels(1, "test"), stream.task_label(1)

    def in_bfloat16() -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            log_probabilities: Tensor = trained.predict(x, head)
        return log_probabilities.float()

    ways: dict[str, Callable[[], Tensor]] = {
        DRAWN: lambda: trained.likelihood.predictive(trained.draws(x, head)),
        "outputs drawn": lambda: trained.predict(x, head),
        BFLOAT16: in_bfloat16,
    }
    work = {way: timed(predict, setting.clock) for way, predict in ways.items()}
    rows = compare(work, setting, SECONDS, reference=DRAWN, size=method)
    for way, predict in ways.items():
        nlls: list[float] = []
        for trained.eval_seed in range(1, 1 + setting.sizes.prediction_seeds):
            nlls.append(float(nll(predict(), y)))
        summaries = {"mean": statistics.mean(nlls), "spread of the": statistics.stdev(nlls)}
        rows += rows_of({f"{name} NLL (nats)": {way: [x]} for name, x in summaries.items()}, method)
    return rows
