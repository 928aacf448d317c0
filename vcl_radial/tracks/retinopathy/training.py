"""The training of one network, epoch by epoch, so that it can be interrupted and resumed.

All randomness of an epoch comes from the seed, the site and the epoch's number alone: a run that
resumes after an epoch ends with the same numbers as one that was never interrupted.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vcl_radial.data.fundus import Augmentation, FundusData, TrainingBatches, evaluation_batches
from vcl_radial.errors import Diverged, UserError
from vcl_radial.likelihoods.objectives import per_point
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.loop import warm_up
from vcl_radial.methods.penalties import PenaltyUpkeep, check_kl
from vcl_radial.methods.registry import find_method
from vcl_radial.methods.tasks import Batch, Task, check_inputs, columns
from vcl_radial.metrics.referral import auc
from vcl_radial.optimizers.schedules import SCHEDULES, set_rates
from vcl_radial.runs.peers import ALONE, Peers
from vcl_radial.system.seeds import seed_of
from vcl_radial.tracks.methods import draws, make_method
from vcl_radial.tracks.retinopathy.networks import make_network, make_optimizer, truncated
from vcl_radial.tracks.retinopathy.prediction import EVAL_BATCH, predict, probability
from vcl_radial.tracks.retinopathy.prepare import Prepared
from vcl_radial.tracks.retinopathy.settings import Recipe

OnBatch = Callable[[], None]

HISTORY = ("member", "site", "epoch", "loss", "nll", "kl", "validation_auc", "seconds")
"""Columns of the history; sites count from 0, epochs from 1.

The member is 0: an ensemble trains its members together. Loss and NLL are in nats per photograph,
the AUC in per cent; the loss of an ensemble is the sum over its members, and the NLL their mean.
The KL is the method's penalty, whichever that is, in nats. The NLL is the mean over the epoch; the
KL, and its share of the loss, are those at its end.
"""


def derived(seed: int, *purpose: int | str) -> int:
    """A different seed for each purpose."""
    return seed_of(
        seed, *(p if isinstance(p, int) else int.from_bytes(p.encode()) for p in purpose)
    )


def targets(recipe: Recipe, data: FundusData) -> Tensor:
    """Targets of a recipe's network: levels or classes of the photographs, `[N]`."""
    if recipe.targets == "levels":
        return torch.from_numpy(data.photographs.grades)
    return data.classes()


def method_of(recipe: Recipe, size: int, device: torch.device | str = "cpu") -> Method:
    """The recipe's method, with a network for photographs of this size.

    Raises:
        UserError: the method does not serve this track, or the network.
    """
    network = make_network(recipe, size).to(device)
    return make_method(
        recipe,
        network,
        kl_weight=recipe.kl_weight,
        train_samples=recipe.train_samples,
        eval_samples=recipe.eval_samples if draws(recipe, find_method(recipe.strategy)) else 1,
        loss_value=False,
    )


def start_of(recipe: Recipe, size: int, seed: int, device: torch.device | str = "cpu") -> Method:
    """The recipe's method with the initial weights of a seed."""
    with seeded_rng(derived(seed, "start", 0), torch.device("cpu")):
        return method_of(recipe, size, device)


class Training:
    """The training of a method on a site.

    Args:
        recipe: the recipe of the method.
        prepared: the photographs of the site.
        seed: seed of the run.
        device: device of the network.
        site: number of the site in a sequence, from 0.
        start: state that the method carries from the previous site.
        peers: processes that share every batch. Each draws its own weights; gradients are
            averaged, so that the penalty counts once.

    Raises:
        UserError: the batch cannot be shared, or is larger than the data, or the method does not
            serve this track.
    """

    def __init__(
        self,
        recipe: Recipe,
        prepared: Prepared,
        seed: int,
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
        self.recipe, self.prepared = recipe, prepared
        self.seed, self.site = seed, site
        self.device, self.peers = torch.device(device), peers
        self._targets = targets(recipe, prepared.data)
        # Each later site has its own seeds.
        self._site_key = (0, "site", site) if site else (0,)
        self.method = start_of(recipe, prepared.data.size, seed, device)
        self.network = self.method.network
        self._samples = 1
        if type(self.method).outputs is Method.outputs:  # the method has no draws of its own
            self._samples, self.method.train_samples = recipe.train_samples, 1
        if start is not None:
            # Copied, because a method may train in place.
            self.method.load_state_dict(copy.deepcopy(start))
        peers.average_gradients(self.network.parameters())
        # Truncated noise has its own sampler, and hooks read `.grad`.
        self.method.gradients_are_read = recipe.truncation is not None or peers.world > 1
        with seeded_rng(derived(seed, "begin", *self._site_key), self.device):
            self._begin()
        self.epoch = 0
        self.history: list[dict[str, float]] = []
        self.best_epoch, self.best_auc = 0, -math.inf
        self.best: dict[str, Any] | None = None

    def _begin(self) -> None:
        """Begin the method's task."""
        recipe, prepared = self.recipe, self.prepared
        rows = np.asarray(prepared.split.train)
        chosen = self.method.select(lambda: Batch(*columns(self._points(rows), self.device)))
        if chosen is not None:
            rows = rows[chosen.cpu().numpy()]
        self.batches = TrainingBatches(
            prepared.data,
            rows,
            recipe.batch_size,
            normalisation=prepared.normalisation,
            targets=self._targets,
            augmentation=Augmentation(rotation=recipe.rotation) if recipe.augment else None,
            seed=derived(self.seed, "batches", *self._site_key),
            share=(self.peers.rank, self.peers.world),
            device=self.device,
        )
        self.task = Task(
            number=self.site,
            points=len(rows),
            batches=lambda: self._points(rows),
            steps=recipe.epochs * len(self.batches),
            epochs=recipe.epochs,
            batch_size=recipe.batch_size // self.peers.world,
            schedule=self._schedule,
        )
        self.method.begin_task(self.task)
        if not self.site:
            check_kl(self.method)
        self._start()
        self._upkeep = PenaltyUpkeep(self.method, self.site)

    def _start(self) -> None:
        """Make the optimiser."""
        make = partial(make_optimizer, self.recipe)
        self.optimizer = self.method.make_optimizer(make)

    def _schedule(self, done: float) -> float:
        """The factor of the learning rate at a share of the epochs."""
        recipe = self.recipe
        # Rounded, because an epoch's first step may be just below a whole number.
        epochs = math.floor(round(done * recipe.epochs, 6))
        return SCHEDULES[recipe.schedule](done) * recipe.learning_rate_decay**epochs

    def _points(self, rows: Any) -> Iterable[Batch]:
        """The photographs of these rows, unchanged."""
        batches = evaluation_batches(
            self.prepared.data,
            rows,
            min(self.recipe.batch_size, EVAL_BATCH),
            normalisation=self.prepared.normalisation,
            targets=self._targets,
            device=self.device,
        )
        return (Batch(batch.x, batch.y) for batch in batches)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done."""
        patience = self.recipe.patience
        waited = self.epoch - self.best_epoch if self.best_epoch else 0
        return self.epoch >= self.recipe.epochs or (patience is not None and waited >= patience)

    def run_epoch(self, on_batch: OnBatch = lambda: None) -> dict[str, float]:
        """Train for an epoch, validate, and return the epoch's line of the history.

        The first call also trains the method's warm-up epochs, if it has any.

        Raises:
            Diverged: the loss stopped being a finite number.
        """
        started = time.perf_counter()
        if not self.epoch:
            # Numbers after the task's epochs give the warm-up another order and other changes.
            numbers = itertools.count(self.recipe.epochs)
            warm_up(
                self.method,
                self._start,
                lambda begin, end: self._pass(next(numbers), begin, end, on_batch),
            )
        loss, nll, kl = self._train(on_batch)
        self.epoch += 1
        if not math.isfinite(loss):
            for batch in self.task.batches():
                check_inputs(batch.x, f"site {self.site}")
            where = f"site {self.site}: " if self.site else ""
            raise Diverged(
                f"{where}the loss of epoch {self.epoch} is {loss}: "
                "choose a smaller learning_rate or initial_rho"
            )
        validation_auc = self.peers.from_first(self._validation_auc, self.device)
        if validation_auc > self.best_auc:
            self.best_epoch, self.best_auc = self.epoch, validation_auc
            if self.recipe.select == "best":
                # The optimiser too, because a method may carry its moments.
                self.best = {
                    "method": copy.deepcopy(self.method.state_dict()),
                    "optimizer": copy.deepcopy(self.optimizer.state_dict()),
                }
        values = (
            0,
            self.site,
            self.epoch,
            loss,
            nll,
            kl,
            validation_auc,
            time.perf_counter() - started,
        )
        self.history.append(dict(zip(HISTORY, map(float, values), strict=True)))
        return self.history[-1]

    def carried(self) -> dict[str, Any]:
        """End the site with the selected epoch, and return the state that the method carries."""
        if self.best is not None:
            self.method.load_state_dict(self.best["method"])
            self.optimizer.load_state_dict(self.best["optimizer"])
        with seeded_rng(derived(self.seed, "end", *self._site_key), self.device):
            self.method.end_task(self.task)
        return self.method.state_dict()

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the training resumes."""
        return {
            "method": self.method.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "history": self.history,
            "best_epoch": self.best_epoch,
            "best_auc": self.best_auc,
            "best": self.best,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` gave."""
        self.method.load_state_dict(state["method"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.history = state["epoch"], list(state["history"])
        self.best_epoch, self.best_auc = state["best_epoch"], state["best_auc"]
        self.best = state["best"]

    def _train(self, on_batch: OnBatch) -> tuple[float, float, float]:
        """Train an epoch; return its loss and NLL, and the penalty at its end."""
        epochs, method = self.recipe.epochs, self.method
        sums = self._pass(self.epoch, self.epoch / epochs, (self.epoch + 1) / epochs, on_batch)
        data_loss, nll = (self.peers.mean(sums) / len(self.batches)).tolist()
        penalty, weight = self._penalty(), method.kl_weight
        penalty_loss = float(per_point(penalty, self.task.points, weight)) if weight else 0.0
        return data_loss + penalty_loss, nll, float(penalty)

    def _pass(self, number: int, begin: float, end: float, on_batch: OnBatch) -> Tensor:
        """Make a step on each batch, and return the sums of `_nlls` over batches.

        Args:
            number: number of the pass, which seeds its order, changes and draws.
            begin: share of the epochs done before it, which sets the learning rate.
            end: share of the epochs done after it.
            on_batch: called after each step.
        """
        self.method.forget_caches()
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        self.network.train()
        rank = self.peers.rank
        seed = derived(
            self.seed, "epoch", *self._site_key, number, *(("rank", rank) if rank else ())
        )
        with seeded_rng(seed, self.device), self._noise():
            for step, batch in enumerate(self.batches.epoch(number)):
                share = begin + (end - begin) * step / len(self.batches)
                set_rates(self.optimizer, self.task.schedule, share)
                sums += self._step(Batch(batch.x, batch.y))
                on_batch()
        return sums

    def _step(self, batch: Batch) -> Tensor:
        """Make the method's step, and return `_nlls`."""
        method, samples, points = self.method, self._samples, len(batch.y)
        batch = method.extend(batch)
        self.optimizer.zero_grad()
        nlls = torch.zeros(2, dtype=torch.float64, device=self.device)
        # One sample's graph at a time, so that samples cost no memory.
        for _ in range(samples):
            outputs = method.outputs(batch)
            loss = method.loss(batch, outputs) / samples
            # Without points of earlier tasks that the batch holds too.
            nlls += self._nlls(outputs[..., :points, :], batch.y[:points]) / samples
            method.backward(loss)
        method.step(self.optimizer)
        self._upkeep.after_step()
        return nlls

    @torch.no_grad()
    def _nlls(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The NLL in the method's objective, and the mean over all outputs, `[2]`."""
        nlls = self.method.nll(outputs, targets), self.method.likelihood.nll(outputs, targets)
        return torch.stack(nlls)

    @torch.no_grad()
    def _penalty(self) -> Tensor:
        """The method's penalty, in nats."""
        self.method.loss_value = True
        penalty = self.method.penalty()
        self.method.loss_value = False
        return torch.as_tensor(penalty)

    def _noise(self) -> AbstractContextManager[None]:
        if self.recipe.truncation is not None:
            return truncated(self.network, self.recipe.truncation)
        return nullcontext()

    def _validation_auc(self) -> float:
        rows = self.prepared.split.validation
        if not len(rows):
            return math.nan
        method, recipe = self.method, self.recipe
        few = recipe.validation_samples if draws(recipe, type(method)) else method.eval_samples
        log_draws = predict(
            method,
            self.prepared.data,
            rows,
            normalisation=self.prepared.normalisation,
            samples=few,
            seed=derived(self.seed, "validation", *self._site_key),
            batch_size=recipe.batch_size,
            device=self.device,
        )
        return float(
            auc(self.prepared.data.photographs.referable[rows], probability(log_draws).numpy())
        )


def trained_method(
    recipe: Recipe, size: int, state: dict[str, Any], device: torch.device | str
) -> Method:
    """The recipe's method for photographs of this size, with a trained state."""
    method = method_of(recipe, size, device)
    method.load_state_dict(state)
    return method
