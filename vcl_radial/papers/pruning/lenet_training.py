"""Training of LeNet-5 with an RDP, and its pruning; epoch by epoch, so that it can be resumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vcl_radial.data.streams.datasets import load_dataset
from vcl_radial.data.streams.preparation import hold_out, standardised
from vcl_radial.errors import Diverged, UserError
from vcl_radial.nn import kl_divergence
from vcl_radial.nn.rdp import RDPBlock
from vcl_radial.objectives import categorical_nll, per_point
from vcl_radial.papers.pruning.lenet_network import BayesianLeNet, Kept, PointLeNet, PrunedLeNet
from vcl_radial.papers.pruning.lenet_size import WHOLE
from vcl_radial.papers.pruning.rdp_modes import all_log_modes, choose_cuts, scores, units_above
from vcl_radial.papers.pruning.rdp_start import RDPStart
from vcl_radial.predict import log_predictive
from vcl_radial.runs.folder import store, stored
from vcl_radial.runs.result_file import Unit
from vcl_radial.runs.settings import Count, Positive

SIDE = 28
_AT_A_TIME = 1000

_Share = Annotated[float, Field(gt=0, lt=1)]


class LeNetUnit(Unit):
    """What decides the numbers of one network.

    Attributes:
        dataset: "mnist" or "digits".
        validation: the share of the training images that cuts are chosen on.
        epochs: of the posterior.
        batch_size: images in a step; an incomplete batch is left out.
        learning_rate: Adam's, of directions and biases; falls to 0 as a cosine.
        radius_learning_rate: Adam's, of log radii, their scales and concentrations; likewise.
        length: see `RDPStart`.
        spread: see `RDPStart`.
        prior_scale: see `RDPStart`.
        prior_length: see `RDPStart`.
        tolerance: by how much pruning may raise the validation error, in percentage points.
        samples: weight draws of the predictive distribution of the whole network.
    """

    dataset: str
    validation: _Share = 0.1
    epochs: Count = 20
    batch_size: Count = 128
    learning_rate: Positive = 1e-3
    radius_learning_rate: Positive = 2e-2
    length: _Share = 0.97
    spread: Positive = 0.03
    prior_scale: Positive = 1e-5
    prior_length: _Share = 0.9
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.2
    samples: Count = 5


@dataclass(frozen=True, eq=False)
class Images:
    """Images `[N, 1, 28, 28]` and labels `[N]`, by part: "train", "validation", "test"."""

    x: dict[str, Tensor]
    y: dict[str, Tensor]


def load_images(unit: LeNetUnit, data_dir: Path | None, device: torch.device) -> Images:
    """The standardised images of a data set; digits are brought to 28 x 28 pixels.

    Raises:
        UserError: see `load_dataset`.
    """
    data = load_dataset(unit.dataset, data_dir)
    x = standardised(data, flatten=False)
    if x.shape[-1] != SIDE:
        x = interpolate(x, (SIDE, SIDE), mode="bilinear")
    y = torch.cat([data.train_y, data.test_y])
    rows = torch.arange(len(data.train_y))
    # The same images are held out for every seed.
    generator = torch.Generator().manual_seed(0)
    train, validation = hold_out(rows, unit.validation, generator, unit.dataset)
    parts = {"train": train, "validation": validation, "test": torch.arange(len(rows), len(x))}
    return Images(
        {part: x[own].to(device) for part, own in parts.items()},
        {part: y[own].to(device) for part, own in parts.items()},
    )


def train(
    unit: LeNetUnit, images: Images, checkpoint: Path, say: Callable[[str], None]
) -> tuple[BayesianLeNet, float]:
    """Train a network from its start, or on from where a checkpoint was left.

    Minimises the mean NLL + KL(q || p) / N. The means start at He's initialisation.

    Args:
        unit: how.
        images: the training images are used, and the validation images looked at.
        checkpoint: the file that is written after every epoch.
        say: takes a line of progress.

    Returns:
        The network, and the seconds of processor time that it took.

    Raises:
        Diverged: the loss is no longer a finite number.
        UserError: a batch is larger than the data, or the checkpoint cannot be written or is
            damaged.
    """
    x, y = images.x["train"], images.y["train"]
    if unit.batch_size > len(x):
        raise UserError(
            f"batch_size = {unit.batch_size} is more than the {len(x)} training images: choose a "
            "smaller one"
        )
    started = process_time()
    torch.manual_seed(unit.seed)
    point = PointLeNet().to(x.device)
    stamp = {"unit": unit.model_dump(mode="json")}
    state = stored(checkpoint, stamp, "recipe")
    start = {name: RDPStart("double", *_start(unit)) for name in ("conv2", "fc1", "fc2")}
    # The one input channel of conv1 is no group to speak of: all its weights are its column.
    settings = {"conv1": RDPStart("row", *_start(unit)), **start}
    network = BayesianLeNet(point, settings).to(x.device)
    optimizer = _optimizer(network, unit)
    first = 1
    if state is not None:
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        _set_randomness(state["randomness"])
        first = state["epoch"] + 1
        started -= state["seconds"]
        say(f"goes on after epoch {first - 1}")
    for epoch in range(first, unit.epochs + 1):
        loss = _train_epoch(network, optimizer, unit, x, y, epoch)
        wrong = error(
            PrunedLeNet(network.means(), whole()), images.x["validation"], images.y["validation"]
        )
        say(f"epoch {epoch} of {unit.epochs}: NLL {loss:.4f}, validation error {wrong:.2f} %")
        state = {
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "randomness": _randomness(),
            "epoch": epoch,
            "seconds": process_time() - started,
        }
        store(checkpoint, stamp, state)
    return network, process_time() - started


def prune(network: BayesianLeNet, unit: LeNetUnit, images: Images) -> dict[str, object]:
    """Choose the cuts on the validation images, prune, and score on the test images.

    The pruned network has the posterior means for weights, as in the paper.

    Returns:
        Plain numbers: "modes" and "cuts" by row, column and set of units, "architecture", and
        errors in per cent.
    """
    layers = network.means()
    modes = all_log_modes(network)
    of_units = scores(modes)
    x, y = images.x, images.y

    def wrong(kept: Kept, part: str) -> float:
        return error(PrunedLeNet(layers, kept), x[part], y[part])

    cuts = choose_cuts(of_units, lambda kept: wrong(kept, "validation"), unit.tolerance)
    kept = units_above(of_units, cuts)
    test = torch.split(x["test"], _AT_A_TIME)
    draws = torch.cat([log_predictive(network, part, unit.samples).argmax(1) for part in test])
    return {
        "modes": {f"{name} {kind}": values.tolist() for (name, kind), values in modes.items()},
        "cuts": cuts,
        "architecture": str(kept.architecture),
        "error": wrong(kept, "test"),
        "validation_error": wrong(kept, "validation"),
        "error_before": wrong(whole(), "test"),
        "validation_error_before": wrong(whole(), "validation"),
        "error_of_draws": 100 * float((draws != y["test"]).double().mean()),
    }


@torch.no_grad()
def error(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """The share of the images `[N, 1, 28, 28]` that is put into a wrong class, in per cent."""
    parts = zip(torch.split(x, _AT_A_TIME), torch.split(y, _AT_A_TIME), strict=True)
    return 100 * sum(int((network(x).argmax(1) != y).sum()) for x, y in parts) / len(y)


def whole() -> Kept:
    """All units."""
    sizes = (WHOLE.conv1, WHOLE.conv2, WHOLE.inputs, WHOLE.hidden)
    return Kept(*(torch.ones(size, dtype=torch.bool) for size in sizes))


def _start(unit: LeNetUnit) -> tuple[float, float, float, float]:
    return unit.length, unit.spread, unit.prior_scale, unit.prior_length


def _optimizer(network: BayesianLeNet, unit: LeNetUnit) -> torch.optim.Optimizer:
    radii = [
        parameter
        for block in network.modules()
        if isinstance(block, RDPBlock)
        for parameter in (block.loc, block.rho, block.log_concentration)
    ]
    taken = {id(parameter) for parameter in radii}
    others = [parameter for parameter in network.parameters() if id(parameter) not in taken]
    return torch.optim.Adam(
        [
            {"params": others, "lr": unit.learning_rate},
            {"params": radii, "lr": unit.radius_learning_rate},
        ]
    )


def _train_epoch(
    network: BayesianLeNet,
    optimizer: torch.optim.Optimizer,
    unit: LeNetUnit,
    x: Tensor,
    y: Tensor,
    epoch: int,
) -> float:
    """One epoch; returns the mean NLL of its batches."""
    steps = len(x) // unit.batch_size
    rates = (unit.learning_rate, unit.radius_learning_rate)
    whole_nll = torch.zeros((), device=x.device)
    for step, rows in enumerate(_batches(unit, x), start=(epoch - 1) * steps):
        share = step / (unit.epochs * steps)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * (1 + math.cos(math.pi * share)) / 2
        optimizer.zero_grad()
        nll = categorical_nll(network(x[rows]), y[rows])
        (nll + per_point(kl_divergence(network, [0]), len(x))).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        whole_nll += nll.detach()
    if not math.isfinite(whole_nll.item()):
        raise Diverged("the loss is no longer a finite number: lower the learning rates")
    return whole_nll.item() / steps


def _batches(unit: LeNetUnit, x: Tensor) -> Iterator[Tensor]:
    order = torch.randperm(len(x)).to(x.device)
    size = unit.batch_size
    return iter(torch.split(order[: len(x) // size * size], size))


def _randomness() -> list[Tensor]:
    on_gpu = [torch.cuda.get_rng_state()] if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *on_gpu]


def _set_randomness(states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1 and torch.cuda.is_available():
        torch.cuda.set_rng_state(states[1])
