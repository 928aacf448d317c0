"""Training of LeNet-5 with an RDP, and its pruning."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate

import vcl_radial as vr
from reports.seeds.pruning.lenet.modes import all_log_modes, choose_cuts, scores, units_above
from reports.seeds.pruning.lenet.network import BayesianLeNet, Kept, PointLeNet, pruned_logits
from reports.seeds.pruning.settings import LeNetData, LeNetRecipe
from reports.seeds.pruning.training import PruningTraining
from vcl_radial.data.streams.datasets import load_dataset
from vcl_radial.data.streams.preparation import hold_out, standardised
from vcl_radial.likelihoods.predict import log_predictive, seeded_rng
from vcl_radial.nn.rdp import RDPBlock
from vcl_radial.training.losses import Epoch
from vcl_radial.training.source import Tasks

SIDE = 28
_AT_A_TIME = 1000

Images = dict[str, tuple[Tensor, Tensor]]
"""Images `[N, 1, 28, 28]` and labels `[N]`, by part: "train", "validation", "test"."""


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
    return {part: (x[rows].to(device), y[rows].to(device)) for part, rows in parts.items()}


class LeNetTraining(PruningTraining):
    """LeNet-5: minimises the mean NLL + KL(q || p) / N, then is pruned.

    The means start at He's initialisation. The test images are used only to score.
    """

    _lowest = math.inf
    _best: Mapping[str, Any] | None = None

    def prune(self) -> dict[str, Any]:
        """Train and prune; see `prune`."""
        return prune(self.trained(), self.run.recipe, self.data)

    def trained(self) -> BayesianLeNet:
        """The network after its epochs, or at the best of the last ones.

        Raises:
            Diverged: the loss is no longer a finite number.
            DataError: a batch is larger than the data.
        """
        recipe, images = self.run.recipe, self.data["train"]
        device, size = images[0].device, recipe.batch_size
        with seeded_rng(self.run.seed, device):
            network = BayesianLeNet(PointLeNet(), recipe).to(device)
            trainer = vr.Trainer(
                vr.VCL(network),
                optimizer=lambda _: make_optimizer(network, recipe),
                epochs=recipe.epochs,
                schedule=recipe.schedule,
                rates_by="step",
                seed=None,
                measure=recipe.best_of > 1,
                on_epoch=lambda epoch: self.keep_best(network, epoch),
            )
            trainer.fit(Tasks([images], batch_size=size, drop_last=True))
        if self._best:
            network.load_state_dict(self._best)
        return network

    def keep_best(self, network: BayesianLeNet, epoch: Epoch) -> None:
        """Report an epoch, and keep the network if its training cross-entropy is the lowest.

        Only the last `best_of` epochs count (section 5.2 of the paper).
        """
        self.on_epoch(epoch)
        recipe = self.run.recipe
        is_late = epoch.epoch > recipe.epochs - recipe.best_of
        if recipe.best_of > 1 and is_late and epoch.nll < self._lowest:
            self._lowest, self._best = epoch.nll, copy.deepcopy(network.state_dict())


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

    def wrong(kept: Kept, part: str) -> float:
        return error(partial(pruned_logits, layers, kept), *images[part])

    cuts = choose_cuts(strengths, lambda kept: wrong(kept, "validation"), recipe.tolerance)
    kept = units_above(strengths, cuts)
    x, y = images["test"]
    batches = torch.split(x, _AT_A_TIME)
    draws = torch.cat([log_predictive(network, b, recipe.eval_samples).argmax(1) for b in batches])
    return {
        "modes": {group: values.tolist() for group, values in modes.items()},
        "cuts": cuts,
        "architecture": str(kept.architecture),
        "error": wrong(kept, "test"),
        "validation_error": wrong(kept, "validation"),
        "error_before": wrong(Kept.whole(), "test"),
        "validation_error_before": wrong(Kept.whole(), "validation"),
        "error_of_draws": 100 * float((draws != y).double().mean()),
    }


@torch.no_grad()
def error(network: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> float:
    """The share of the images `[N, 1, 28, 28]` that is put into a wrong class, in per cent."""
    parts = zip(torch.split(x, _AT_A_TIME), torch.split(y, _AT_A_TIME), strict=True)
    return 100 * sum(int((network(x).argmax(1) != y).sum()) for x, y in parts) / len(y)


def make_optimizer(network: BayesianLeNet, recipe: LeNetRecipe) -> torch.optim.Adam:
    """Adam with a learning rate for directions and biases, and another one for radii."""
    blocks = [module for module in network.modules() if isinstance(module, RDPBlock)]
    radii = [p for block in blocks for p in (block.loc, block.rho, block.log_concentration)]
    radius_ids = set(map(id, radii))
    remaining = [p for p in network.parameters() if id(p) not in radius_ids]
    rates = {"lr": recipe.learning_rate}, {"lr": recipe.radius_learning_rate}
    groups = zip(rates, (remaining, radii), strict=True)
    return torch.optim.Adam([{"params": parameters, **rate} for rate, parameters in groups])
