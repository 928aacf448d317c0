"""The training of one network, epoch by epoch, so that it can be left and taken up again.

All randomness of an epoch comes from the seed, the member and the epoch's number alone: a run that
goes on from the state after an epoch ends with the same numbers as one that was never left.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from vcl_radial.data.fundus import Augmentation, TrainingBatches
from vcl_radial.errors import Diverged, UserError
from vcl_radial.metrics.referral import auc
from vcl_radial.nn import (
    ClosedFormGradients,
    consolidate,
    kl_divergence,
    posterior_blocks,
)
from vcl_radial.objectives import categorical_nll, per_point
from vcl_radial.predict import own_randomness
from vcl_radial.runs.peers import ALONE, Peers, unsynchronised
from vcl_radial.tracks.retinopathy.networks import at_means, make_network, make_optimizer, truncated
from vcl_radial.tracks.retinopathy.prediction import predict, probability
from vcl_radial.tracks.retinopathy.prepare import Prepared
from vcl_radial.tracks.retinopathy.settings import Recipe

OnBatch = Callable[[], None]

HISTORY = ("member", "site", "epoch", "loss", "nll", "kl", "validation_auc", "seconds")
"""Columns of the history; member and site count from 0, epochs from 1.

Loss and NLL are in nats per photograph, the KL in nats, the AUC in per cent. The NLL is the mean
over the epoch; the KL, and its share of the loss, are those at its end.
"""


def derived(seed: int, *purpose: int | str) -> int:
    """A seed of its own for each purpose."""
    words = [p if isinstance(p, int) else int.from_bytes(p.encode()) for p in purpose]
    (state,) = np.random.SeedSequence([seed, *words]).generate_state(1)
    return int(state)


class Training:
    """A network in training.

    Args:
        recipe: how.
        prepared: on what.
        seed: of the run.
        member: of the ensemble, from 0.
        device: of the network.
        site: of a sequence, from 0.
        start: the weights of the site before; the posterior among them becomes the prior.
        peers: that share every batch. Each draws weights of its own; gradients are averaged
            over them, so that the KL counts once.

    Raises:
        UserError: the batch cannot be shared, or is larger than the data.
    """

    def __init__(
        self,
        recipe: Recipe,
        prepared: Prepared,
        seed: int,
        member: int = 0,
        device: torch.device | str = "cpu",
        *,
        site: int = 0,
        start: dict[str, Any] | None = None,
        peers: Peers = ALONE,
    ) -> None:
        if recipe.batch_size % peers.world:
            raise UserError(
                f"batch_size = {recipe.batch_size} must be a multiple of the {peers.world} "
                "processes that share it"
            )
        if site:
            # The means have their start from the site before.
            recipe = recipe.model_copy(update={"pretrain_epochs": 0})
        self.recipe, self.prepared = recipe, prepared
        self.seed, self.member, self.site = seed, member, site
        self.device, self.peers = torch.device(device), peers
        # What a later site draws has seeds of its own.
        self._whose = (member, "site", site) if site else (member,)
        with own_randomness(derived(seed, "start", member), torch.device("cpu")):
            self.network = make_network(recipe, prepared.data.size)
        if start is not None:
            self.network.load_state_dict(start)
            consolidate(self.network, [])
        self.network.to(self.device)
        self._together = peers.together(self.network, some_unused=recipe.pretrain_epochs > 0)
        self.optimizer = make_optimizer(recipe, self.network)
        self.batches = TrainingBatches(
            prepared.data,
            prepared.split.train,
            recipe.batch_size,
            normalisation=prepared.normalisation,
            augmentation=Augmentation() if recipe.augment else None,
            seed=derived(seed, "batches", *self._whose),
            share=(peers.rank, peers.world),
            device=self.device,
        )
        self.epoch = 0
        self.history: list[dict[str, float]] = []
        self.best_epoch, self.best_auc = 0, -math.inf
        self.best: dict[str, Any] | None = None

    @property
    def finished(self) -> bool:
        """Whether no epoch is to come."""
        patience = self.recipe.patience
        waited = self.epoch - self.best_epoch if self.best_epoch else 0
        return self.epoch >= self.recipe.epochs or (patience is not None and waited >= patience)

    def run_epoch(self, on_batch: OnBatch = lambda: None) -> dict[str, float]:
        """Train for an epoch, validate, and return the epoch's line of the history.

        Raises:
            Diverged: the loss stopped being a finite number.
        """
        started = time.perf_counter()
        loss, nll, kl = self._train(on_batch)
        self.epoch += 1
        if not math.isfinite(loss):
            raise Diverged(
                f"{self.where}: the loss of epoch {self.epoch} is {loss}: "
                "choose a smaller learning_rate or initial_rho"
            )
        found = self.peers.from_first(self._validation_auc, self.device)
        # Means alone are no posterior: the epochs before it begins cannot be chosen.
        if self.epoch > self.recipe.pretrain_epochs and found > self.best_auc:
            self.best_epoch, self.best_auc = self.epoch, found
            if self.recipe.select == "best":
                self.best = copy.deepcopy(self.network.state_dict())
        values = (
            self.member,
            self.site,
            self.epoch,
            loss,
            nll,
            kl,
            found,
            time.perf_counter() - started,
        )
        self.history.append(dict(zip(HISTORY, map(float, values), strict=True)))
        return self.history[-1]

    @property
    def where(self) -> str:
        """Member and site, in words."""
        return f"member {self.member}" + (f", site {self.site}" if self.site else "")

    def selected(self) -> dict[str, Any]:
        """The weights of the epoch that the recipe selects."""
        return self.network.state_dict() if self.best is None else self.best

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the training can go on."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "history": self.history,
            "best_epoch": self.best_epoch,
            "best_auc": self.best_auc,
            "best": self.best,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.history = state["epoch"], list(state["history"])
        self.best_epoch, self.best_auc = state["best_epoch"], state["best_auc"]
        self.best = state["best"]

    def _train(self, on_batch: OnBatch) -> tuple[float, float, float]:
        """An epoch's loss and mean NLL, and the KL at its end, which the loss holds."""
        recipe, points = self.recipe, len(self.prepared.split.train)
        pretraining = self.epoch < recipe.pretrain_epochs
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.learning_rate * recipe.learning_rate_decay**self.epoch
        bayesian = recipe.posterior != "none" and not pretraining
        with_kl = bayesian and recipe.kl_weight > 0
        samples = 1 if pretraining and not recipe.dropout else recipe.train_samples
        nll_of_all = torch.zeros((), dtype=torch.float64, device=self.device)
        self.network.train()
        rank = self.peers.rank
        seed = derived(
            self.seed, "epoch", *self._whose, self.epoch, *(("rank", rank) if rank else ())
        )
        with own_randomness(seed, self.device), self._noise(pretraining):
            closed_form = self._closed_form() if bayesian else None
            blocks = posterior_blocks(self.network, [])
            for batch in self.batches.epoch(self.epoch):
                self.optimizer.zero_grad()
                if with_kl and closed_form is None:
                    with unsynchronised(self._together):
                        kl = per_point(kl_divergence(self.network, []), points, recipe.kl_weight)
                        torch.autograd.backward(kl)
                # One graph at a time: samples cost time, but no memory.
                for left in reversed(range(samples)):
                    with unsynchronised(self._together) if left else nullcontext():
                        nll = categorical_nll(self._together(batch.x), batch.y) / samples
                        torch.autograd.backward(nll)
                    nll_of_all += nll.detach()
                if closed_form is not None:
                    closed_form.before_step(self.optimizer, blocks, recipe.kl_weight / points)
                self.optimizer.step()
                on_batch()
            if closed_form is not None:
                closed_form.release()
            with torch.no_grad():
                last_kl = kl_divergence(self.network, [])
                kl_of_loss = float(per_point(last_kl, points, recipe.kl_weight)) if with_kl else 0.0
        mean_nll = float(self.peers.mean(nll_of_all)) / len(self.batches)
        return mean_nll + kl_of_loss, mean_nll, float(last_kl)

    def _closed_form(self) -> ClosedFormGradients | None:
        """Gradients without autograd through posterior and KL, where nothing else is wanted."""
        served = self.recipe.truncation is None and self.peers.world == 1
        if not served or not ClosedFormGradients.serves(self.network):
            return None
        return ClosedFormGradients(self.network)

    def _noise(self, pretraining: bool) -> Any:
        if pretraining:
            return at_means(self.network)
        if self.recipe.truncation is not None:
            return truncated(self.network, self.recipe.truncation)
        return nullcontext()

    def _validation_auc(self) -> float:
        rows = self.prepared.split.validation
        if not len(rows):
            return math.nan
        log_draws = predict(
            self.network,
            self.prepared.data,
            rows,
            normalisation=self.prepared.normalisation,
            samples=self.recipe.validation_samples if self.recipe.draws else 1,
            seed=derived(self.seed, "validation", *self._whose),
            batch_size=self.recipe.batch_size,
            device=self.device,
        )
        return auc(self.prepared.data.photographs.referable[rows], probability(log_draws).numpy())


def trained_network(
    recipe: Recipe, size: int, weights: dict[str, Any], device: torch.device
) -> nn.Module:
    """The recipe's network for photographs of this size, with these weights."""
    network = make_network(recipe, size)
    network.load_state_dict(weights)
    return network.to(device)
