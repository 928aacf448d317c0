"""Weight samples of a training step by one batched product, against one sample after another.

A step of `radial-vcl` on the second task, in batches of 256, with four hidden layers of 200. One
after another: S passes through the network, as `run` trains. Batched: the S draws of a layer are
stacked, `[S, out, in]`, and one product gives the outputs of all, as the radial paper's blog post
describes. Draws, KL and optimiser are the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Row, Setting, compare
from benchmarks.speed.training import STEP, Training
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch
from vcl_radial.nn import BayesianLinear

LOOP = "one after another"
RATIO = f"ratio to {LOOP}"
BATCH = 256
PICTURES = (Ratios("samples", f"A training step by batched samples, {RATIO}", RATIO),)


def measure(setting: Setting) -> list[Row]:
    """Seconds per step both ways and their ratio, for each number of samples."""
    rows: list[Row] = []
    for draws in setting.sizes.draws:
        keys = {"batch_size": BATCH, **setting.sizes.recipe, "train_samples": draws}
        loop, batched = (
            Training("radial-vcl", keys, setting).fill(setting.sizes.unit_seconds) for _ in range(2)
        )
        batch_samples(batched.method)
        work = {LOOP: loop.step, "batched": batched.step}
        rows += compare(work, setting, STEP, reference=LOOP, size=f"draws={draws}")
    return rows


def batch_samples(method: Method) -> None:
    """Let the steps of a method on an MLP compute all samples by one product per layer."""
    network: Any = method.network  # an MLP
    body, head = network.body, network.head

    def outputs(batch: Batch) -> Tensor:
        layers = [module for module in body if isinstance(module, BayesianLinear)]
        h = batch.x.flatten(1).expand(method.train_samples, -1, -1)
        for layer in (*layers, head.head(int(batch.task))):
            draws = [layer.weights.sample() for _ in range(method.train_samples)]
            weight, bias = (torch.stack(parts) for parts in zip(*draws, strict=True))
            if layer is not layers[0]:
                h = h.relu()
            h = torch.baddbmm(bias.unsqueeze(1), h, weight.mT)
        return h if method.train_samples > 1 else h[0]

    method.outputs = outputs  # type: ignore[method-assign]
