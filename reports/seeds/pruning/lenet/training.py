"""Training of LeNet-5 with an RDP, and its pruning; epoch by epoch, so that it can be resumed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from reports.seeds.pruning.lenet.modes import all_log_modes, choose_cuts, scores, units_above
from reports.seeds.pruning.lenet.network import BayesianLeNet, Kept, PointLeNet, PrunedLeNet
from reports.seeds.pruning.lenet.size import WHOLE
from reports.seeds.pruning.lenet.spec import LeNetData, LeNetRecipe
from reports.seeds.pruning.lenet.start import RDPStart
from reports.seeds.pruning.track import numbers_file
from vcl_radial.data.streams.datasets import load_dataset
from vcl_radial.data.streams.preparation import hold_out, standardised
from vcl_radial.errors import Diverged, UserError
from vcl_radial.likelihoods.objectives import categorical_nll, per_point
from vcl_radial.likelihoods.predict import log_predictive, seeded_rng
from vcl_radial.nn import kl_divergence
from vcl_radial.nn.rdp import RDPBlock
from vcl_radial.runs.training import Step

SIDE = 28
_AT_A_TIME = 1000


@dataclass(frozen=True, eq=False)
class Images:
    """Images `[N, 1, 28, 28]` and labels `[N]`, by part: "train", "validation", "test"."""

    x: dict[str, Tensor]
    y: dict[str, Tensor]


def load_images(settings: LeNetData, data_dir: Path | None, device: torch.device) -> Images:
    """The standardised images of a data set; digits are brought to 28 x 28 pixels.

    Raises:
        UserError: see `load_dataset`.
    """
    data = load_dataset(settings.dataset, data_dir)
    x = standardised(data, flatten=False)
    if x.shape[-1] != SIDE:
        x = interpolate(x, (SIDE, SIDE), mode="bilinear")
    y = torch.cat([data.train_y, data.test_y])
    rows = torch.arange(len(data.train_y))
    # The same images are held out for every seed.
    generator = torch.Generator().manual_seed(0)
    train, validation = hold_out(rows, settings.validation, generator, settings.dataset)
    parts = {"train": train, "validation": validation, "test": torch.arange(len(rows), len(x))}
    return Images(
        {part: x[indices].to(device) for part, indices in parts.items()},
        {part: y[indices].to(device) for part, indices in parts.items()},
    )


class LeNetTraining:
    """A network in training: minimises the mean NLL + KL(q || p) / N, then is pruned.

    The means start at He's initialisation.

    Args:
        recipe: settings of training and pruning.
        seed: seed of all randomness.
        images: the images by part; the test images are used only to score.

    Raises:
        UserError: a batch is larger than the data.
    """

    def __init__(self, recipe: LeNetRecipe, seed: int, images: Images) -> None:
        self.recipe, self.images = recipe, images
        x = images.x["train"]
        if recipe.batch_size > len(x):
            raise UserError(
                f"batch_size = {recipe.batch_size} is more than the {len(x)} training images: "
                "choose a smaller one"
            )
        self.device = x.device
        with seeded_rng(seed, self.device):
            self.network = self._network()
            self._states = _randomness()
        self.optimizer = _optimizer(self.network, recipe)
        self.epoch, self.seconds = 0, 0.0
        self.numbers: dict[str, Any] = {}

    def position(self) -> Step:
        """The step of the last epoch that is done."""
        return self._step(f"resumes after epoch {self.epoch}" if self.epoch else None)

    def state_dict(self) -> dict[str, Any]:
        """Network, optimizer and generators."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "randomness": self._states,
            "epoch": self.epoch,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` gave."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._states = state["randomness"]
        self.epoch, self.seconds = state["epoch"], state["seconds"]

    def steps(self) -> Iterator[Step]:
        """Train epoch by epoch, then prune and score.

        Raises:
            Diverged: the loss is no longer a finite number.
        """
        images, recipe = self.images, self.recipe
        while self.epoch < recipe.epochs:
            started = process_time()
            with self._randomness():
                x, y = images.x["train"], images.y["train"]
                loss = _train_epoch(self.network, self.optimizer, recipe, x, y, self.epoch + 1)
                centre = PrunedLeNet(self.network.means(), whole())
                wrong = error(centre, images.x["validation"], images.y["validation"])
            self.epoch += 1
            self.seconds += process_time() - started
            yield self._step(
                f"epoch {self.epoch} of {recipe.epochs}: NLL {loss:.4f}, "
                f"validation error {wrong:.2f} %",
                {"nll": loss, "validation_error": wrong},
            )
        with self._randomness():
            self.numbers = prune(self.network, recipe, images)

    def files(self) -> dict[str, str]:
        """What was pruned, and the errors before and after."""
        return numbers_file(self.numbers)

    def kept(self) -> dict[str, Any]:
        """Return nothing: no other result is kept."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Seconds of processor time of the training."""
        return {"seconds": self.seconds}

    def _network(self) -> BayesianLeNet:
        point = PointLeNet().to(self.device)
        start = {name: RDPStart("double", *_start(self.recipe)) for name in ("conv2", "fc1", "fc2")}
        # The one input channel of conv1 is no group to speak of: all its weights are its column.
        settings = {"conv1": RDPStart("row", *_start(self.recipe)), **start}
        return BayesianLeNet(point, settings).to(self.device)

    @contextmanager
    def _randomness(self) -> Iterator[None]:
        """Inside, the generators go on from where they were left."""
        with seeded_rng(0, self.device):
            _set_randomness(self._states)
            yield
            self._states = _randomness()

    def _step(self, news: str | None, scalars: Mapping[str, float] | None = None) -> Step:
        current = f"epoch {min(self.epoch + 1, self.recipe.epochs)} of {self.recipe.epochs}"
        return Step(
            self.epoch,
            current,
            epoch=self.epoch,
            epochs=self.recipe.epochs,
            news=news,
            scalars=scalars or {},
            at=self.epoch,
        )


def prune(network: BayesianLeNet, recipe: LeNetRecipe, images: Images) -> dict[str, Any]:
    """Choose the cuts on the validation images, prune, and score on the test images.

    The pruned network has the posterior means for weights, as in the paper.

    Returns:
        Plain numbers: "modes" and "cuts" by row, column and set of units, "architecture", and
        errors in per cent.
    """
    layers = network.means()
    modes = all_log_modes(network)
    strengths = scores(modes)
    x, y = images.x, images.y

    def wrong(kept: Kept, part: str) -> float:
        return error(PrunedLeNet(layers, kept), x[part], y[part])

    cuts = choose_cuts(strengths, lambda kept: wrong(kept, "validation"), recipe.tolerance)
    kept = units_above(strengths, cuts)
    test = torch.split(x["test"], _AT_A_TIME)
    draws = torch.cat(
        [log_predictive(network, part, recipe.eval_samples).argmax(1) for part in test]
    )
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


def _start(recipe: LeNetRecipe) -> tuple[float, float, float, float]:
    return recipe.length, recipe.spread, recipe.prior_scale, recipe.prior_length


def _optimizer(network: BayesianLeNet, recipe: LeNetRecipe) -> torch.optim.Optimizer:
    radii = [
        parameter
        for block in network.modules()
        if isinstance(block, RDPBlock)
        for parameter in (block.loc, block.rho, block.log_concentration)
    ]
    radius_ids = {id(parameter) for parameter in radii}
    rest = [parameter for parameter in network.parameters() if id(parameter) not in radius_ids]
    return torch.optim.Adam(
        [
            {"params": rest, "lr": recipe.learning_rate},
            {"params": radii, "lr": recipe.radius_learning_rate},
        ]
    )


def _train_epoch(
    network: BayesianLeNet,
    optimizer: torch.optim.Optimizer,
    recipe: LeNetRecipe,
    x: Tensor,
    y: Tensor,
    epoch: int,
) -> float:
    """One epoch; returns the mean NLL of its batches."""
    steps = len(x) // recipe.batch_size
    rates = (recipe.learning_rate, recipe.radius_learning_rate)
    whole_nll = torch.zeros((), device=x.device)
    for step, rows in enumerate(_batches(recipe, x), start=(epoch - 1) * steps):
        share = step / (recipe.epochs * steps)
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


def _batches(recipe: LeNetRecipe, x: Tensor) -> Iterator[Tensor]:
    order = torch.randperm(len(x)).to(x.device)
    size = recipe.batch_size
    return iter(torch.split(order[: len(x) // size * size], size))


def _randomness() -> list[Tensor]:
    on_gpu = [torch.cuda.get_rng_state()] if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *on_gpu]


def _set_randomness(states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1 and torch.cuda.is_available():
        torch.cuda.set_rng_state(states[1])
