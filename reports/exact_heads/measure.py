"""`python -m reports.exact_heads.measure`: bytes of an exact posterior, beside its scores.

Random ReLU features of Fashion-MNIST, its ten classes in five tasks of two. The sums of
`BayesLinearClassifier` are stored after every task in the format of a row. K heads of D / K
features are K models whose outputs are averaged: the blocks of a block-diagonal precision. The
probabilities are as sharp as the model's noise precision says, and, in a column of its own, as the
leave-one-out predictions of 2,000 training points say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import nll_loss, one_hot

from vcl_radial.data.streams.datasets import load_dataset
from vcl_radial.features import Inputs, RandomReLU
from vcl_radial.likelihoods.calibration import Sharpness
from vcl_radial.methods.bayes_linear import NOISE, NormalGamma, Sums, prior_precision
from vcl_radial.system import processor

UNITS = 2_000
TASKS = 5
ROWS = 4_096


def forms(units: int) -> Iterator[tuple[str, str, int, int]]:
    """Name, format, number of features and of heads."""
    yield "one head", "square float64", units, 1
    yield "one head", "packed float64", units, 1
    yield "one head", "packed float32", units, 1
    for heads in (2, 4, 8):
        yield f"{heads} heads", "packed float64", units, heads
        yield "one head of as many bytes", "packed float64", round(units / heads**0.5), 1


def with_one(phi: Tensor) -> Tensor:
    """Features and a 1, float64."""
    return torch.cat([phi.double(), phi.new_ones(len(phi), 1).double()], 1)


def size(form: str, features: int, outputs: int) -> int:
    """The bytes of the sums of one head."""
    layout, dtype = form.split()
    numbers = features**2 if layout == "square" else features * (features + 1) // 2
    return (numbers + features * outputs + 2) * (4 if dtype == "float32" else 8)


def head_of(sums: list[Sums], at: Tensor, form: str) -> NormalGamma:
    """The posterior of the features at some columns, after tasks that are stored one by one."""
    total: Sums | None = None
    for task in sums:
        part = Sums(task.squared[at][:, at], task.cross[at], task.squares, task.count)
        total = part if total is None else total + part
        if form.endswith("float32"):
            total = replace(
                total, squared=total.squared.float().double(), cross=total.cross.float().double()
            )
    assert total is not None
    d, outputs = total.cross.shape
    prior = NormalGamma.prior(d, 1.0, *NOISE, outputs=outputs)
    alpha = prior_precision(total, prior)
    return total.posterior(replace(prior, precision=alpha * prior.precision))


def measure(seed: int, units: int = UNITS, limit: int | None = None) -> list[dict[str, object]]:
    """One line for each form."""
    torch.manual_seed(seed)
    data = load_dataset("fashion-mnist")
    x, y = data.train_x[:limit].float() / 255, data.train_y[:limit]
    test_x, test_y = data.test_x[:limit].float() / 255, data.test_y[:limit]
    outputs = int(y.max()) + 1
    features = RandomReLU(Inputs(x[0].numel()), units)
    features.fit(lambda: iter([x[y < outputs // TASKS]]))
    sums = []
    for task in range(TASKS):
        rows = (y * TASKS // outputs == task).nonzero()[:, 0].split(ROWS)
        like = torch.zeros(units + 1, outputs, dtype=torch.float64)
        points = ((with_one(features(x[r])), one_hot(y[r], outputs).double()) for r in rows)
        sums.append(Sums.over(points, like))
    held = torch.randperm(len(y))[:2_000]
    held_phi, test_phi = with_one(features(x[held])), with_one(features(test_x))
    held_y = one_hot(y[held], outputs).double()
    lines: list[dict[str, object]] = []
    for name, form, count, heads in forms(units):
        apart, outputs_of_test, precision, carried = [], [], 0.0, 0
        for block in torch.arange(count).chunk(heads):
            at = torch.cat([block, torch.tensor([units])])
            q = head_of(sums, at, form)
            leverage = q.quadratic(held_phi[:, at])[:, None]
            apart.append(held_phi[:, at] @ q.mean - leverage * held_y)
            spread = 1 + q.quadratic(test_phi[:, at])[:, None]
            outputs_of_test.append(test_phi[:, at] @ q.mean / spread)
            precision += float(q.shape / q.rate) / heads
            carried += size(form, len(at), outputs)
        sharpness = Sharpness()
        sharpness.observe(torch.stack(apart).mean(0), y[held])
        logits = torch.stack(outputs_of_test).mean(0)
        accuracy = float((logits.argmax(1) == test_y).double().mean())
        nlls = {
            key: float(nll_loss((beta * logits).log_softmax(1), test_y))
            for key, beta in (("nll", precision), ("nll_sharpened", sharpness.beta))
        }
        line = {"heads": name, "format": form, "features": count, "seed": seed, "bytes": carried}
        lines.append(line | {"accuracy": 100 * accuracy} | nlls)
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure seeds, and write `results.csv` of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--units", type=int, default=UNITS)
    parser.add_argument("--to", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    processor.prepare(threads=1)
    lines = [line for seed in range(options.seeds) for line in measure(seed, options.units)]
    options.to.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(lines).to_csv(options.to / "results.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    sys.exit(main())
