"""Training of LeNet-5 with an RDP, and its pruning; epoch by epoch, so that it can be resumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from reports.seeds.pruning.lenet.modes import all_log_modes, choose_cuts, scores, units_above
from reports.seeds.pruning.lenet.network import BayesianLeNet, Kept, PointLeNet, PrunedLeNet
from reports.seeds.pruning.settings import LeNetData, LeNetRecipe, LeNetSpec
from reports.seeds.pruning.training import PruningTraining
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


class LeNetTraining(PruningTraining):
    """A network in training: minimises the mean NLL + KL(q || p) / N, then is pruned.

    The means start at He's initialisation.

    Args:
        run: the run.
        images: the images by part; the test images are used only to score.
        report: see `PruningTraining`.

    Raises:
        UserError: a batch is larger than the data.
    """

    def __init__(self, run: LeNetSpec, images: Images, report: Callable[[Step], None]) -> None:
        super().__init__(run, report)
        self.recipe, self.images, self.epoch = run.recipe, images, 0
        x = images.x["train"]
        if self.recipe.batch_size > len(x):
            raise UserError(
                f"batch_size = {self.recipe.batch_size} is more than the {len(x)} training "
                "images: choose a smaller one"
            )
        self.device = x.device
        with seeded_rng(run.seed, self.device):
            self.network = BayesianLeNet(PointLeNet(), self.recipe).to(self.device)
            self._rng_states = _rng_states(self.device)
        self.optimizer = make_optimizer(self.network, self.recipe)

    def position(self) -> Step:
        """The step of the last finished epoch."""
        return self._step(f"resumes after epoch {self.epoch}" if self.epoch else None)

    def state_dict(self) -> dict[str, Any]:
        """Network, optimizer and generators."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng_states": self._rng_states,
            "epoch": self.epoch,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a state of `state_dict`."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._rng_states = state["rng_states"]
        self.epoch, self.seconds = state["epoch"], state["seconds"]

    def steps(self) -> Iterator[Step]:
        """Train epoch by epoch, then prune and score.

        Raises:
            Diverged: the loss is no longer a finite number.
        """
        x, y = self.images.x, self.images.y
        while self.epoch < self.recipe.epochs:
            started = process_time()
            with seeded_rng(0, self.device):
                _set_rng_states(self._rng_states)
                nll = _train_epoch(
                    self.network, self.optimizer, self.recipe, x["train"], y["train"], self.epoch
                )
                self._rng_states = _rng_states(self.device)
            centre = PrunedLeNet(self.network.means(), Kept.whole())
            wrong = error(centre, x["validation"], y["validation"])
            self.epoch += 1
            self.seconds += process_time() - started
            yield self._step(
                f"epoch {self.epoch} of {self.recipe.epochs}: NLL {nll:.4f}, "
                f"validation error {wrong:.2f} %",
                {"nll": nll, "validation_error": wrong},
            )
        self.numbers = prune(self.network, self.recipe, self.images)

    def _step(self, news: str | None, scalars: Mapping[str, float] | None = None) -> Step:
        done, epochs = self.epoch, self.recipe.epochs
        message = f"epoch {min(done + 1, epochs)} of {epochs}"
        return Step(done, message, None, done, epochs, news, scalars=scalars or {}, at=done)


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
    batches = torch.split(x["test"], _AT_A_TIME)
    draws = torch.cat([log_predictive(network, b, recipe.eval_samples).argmax(1) for b in batches])
    return {
        "modes": {group: values.tolist() for group, values in modes.items()},
        "cuts": cuts,
        "architecture": str(kept.architecture),
        "error": wrong(kept, "test"),
        "validation_error": wrong(kept, "validation"),
        "error_before": wrong(Kept.whole(), "test"),
        "validation_error_before": wrong(Kept.whole(), "validation"),
        "error_of_draws": 100 * float((draws != y["test"]).double().mean()),
    }


@torch.no_grad()
def error(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """The share of the images `[N, 1, 28, 28]` that is put into a wrong class, in per cent."""
    parts = zip(torch.split(x, _AT_A_TIME), torch.split(y, _AT_A_TIME), strict=True)
    return 100 * sum(int((network(x).argmax(1) != y).sum()) for x, y in parts) / len(y)


def make_optimizer(network: BayesianLeNet, recipe: LeNetRecipe) -> torch.optim.Adam:
    """Adam with a learning rate for directions and biases, and another one for radii."""
    blocks = [module for module in network.modules() if isinstance(module, RDPBlock)]
    radii = [p for block in blocks for p in (block.loc, block.rho, block.log_concentration)]
    radius_ids = set(map(id, radii))
    remaining = [p for p in network.parameters() if id(p) not in radius_ids]
    return torch.optim.Adam([{"params": remaining}, {"params": radii}])


def _train_epoch(
    network: BayesianLeNet,
    optimizer: torch.optim.Optimizer,
    recipe: LeNetRecipe,
    x: Tensor,
    y: Tensor,
    epoch: int,
) -> float:
    """One epoch, counted from 0; returns the mean NLL of its batches."""
    size, steps = recipe.batch_size, len(x) // recipe.batch_size
    batches = torch.split(torch.randperm(len(x)).to(x.device)[: steps * size], size)
    total = torch.zeros((), device=x.device)
    for step, rows in enumerate(batches, start=epoch * steps):
        decay = (1 + math.cos(math.pi * step / (recipe.epochs * steps))) / 2
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * decay
        optimizer.param_groups[1]["lr"] = recipe.radius_learning_rate * decay
        optimizer.zero_grad()
        nll = categorical_nll(network(x[rows]), y[rows])
        (nll + per_point(kl_divergence(network, [0]), len(x))).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += nll.detach()
    if not math.isfinite(total.item()):
        raise Diverged("the loss is no longer a finite number: lower the learning rates")
    return total.item() / steps


def _rng_states(device: torch.device) -> list[Tensor]:
    on_gpu = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on_gpu]


def _set_rng_states(states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    for state in states[1:]:
        torch.cuda.set_rng_state(state)
