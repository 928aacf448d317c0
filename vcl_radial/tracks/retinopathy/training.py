"""The training of one network on photographs, site after site.

All randomness of an epoch comes from the seed, the site and the epoch's number alone: a run that
resumes after an epoch ends with the same numbers as one that was never interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.fundus import (
    Augmentation,
    FundusData,
    Split,
    TrainingBatches,
    evaluation_batches,
)
from vcl_radial.errors import UserError
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch
from vcl_radial.metrics.referral import auc
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.runs.peers import ALONE, Peers
from vcl_radial.system.seeds import seed_of
from vcl_radial.tracks.methods import draws, make_method
from vcl_radial.tracks.retinopathy.networks import make_network, make_optimizer, truncated
from vcl_radial.tracks.retinopathy.prediction import EVAL_BATCH, predict, probability
from vcl_radial.tracks.retinopathy.prepare import Prepared
from vcl_radial.tracks.retinopathy.settings import Recipe
from vcl_radial.training.seeds import Purpose, SeedOf
from vcl_radial.training.source import TaskSource
from vcl_radial.training.trainer import Trainer


def derived(seed: int, *purpose: int | str) -> int:
    """A different seed for each purpose."""
    return seed_of(
        seed, *(p if isinstance(p, int) else int.from_bytes(p.encode()) for p in purpose)
    )


def seeds(seed: int, rank: int = 0) -> SeedOf:
    """The seeds of a run's parts: one per site and, in the epochs of a site, one per process."""

    def seed_for(purpose: Purpose, site: int, epoch: int) -> int | None:
        key = (0, "site", site) if site else (0,)
        if purpose == "task":
            return None
        if purpose == "epoch":
            return derived(seed, "epoch", *key, epoch, *(("rank", rank) if rank else ()))
        return derived(seed, purpose, *key)

    return seed_for


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
    return make_method(recipe, make_network(recipe, size).to(device))


def start_of(recipe: Recipe, size: int, seed: int, device: torch.device | str = "cpu") -> Method:
    """The recipe's method with the initial weights of a seed."""
    with seeded_rng(derived(seed, "start", 0), torch.device("cpu")):
        return method_of(recipe, size, device)


@dataclass(frozen=True)
class SiteTask:
    """The training photographs of a site as a task; see `vcl_radial.training.source.TaskData`.

    Attributes:
        site: the photographs.
        recipe: recipe of the method.
        rows: rows of the photographs to train on.
        seed: seed of order and changes of the photographs.
        device: device of the batches.
        peers: processes that share every batch.
    """

    site: Prepared
    recipe: Recipe
    rows: NDArray[np.int64]
    seed: int
    device: torch.device
    peers: Peers = ALONE
    heads: Sequence[int] = (0,)

    @property
    def name(self) -> str:
        """Name of the site."""
        return self.site.name

    @property
    def batch_size(self) -> int:
        """Photographs of a step in this process."""
        return self.recipe.batch_size // self.peers.world

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def epoch_steps(self) -> int:
        """Number of steps in an epoch."""
        return len(self._training)

    def select(self, rows: Tensor) -> SiteTask:
        """The photographs with these indices `[n]`, as a task."""
        return replace(self, rows=self.rows[rows.numpy()])

    def batches(self) -> Iterator[Batch]:
        """Every photograph once, unchanged, in the order of the data."""
        parts = evaluation_batches(
            self.site.data,
            self.rows,
            min(self.recipe.batch_size, EVAL_BATCH),
            normalisation=self.site.normalisation,
            targets=targets(self.recipe, self.site.data),
            device=self.device,
        )
        return (Batch(part.x, part.y) for part in parts)

    def epoch(self, number: int) -> Iterable[Batch]:
        """The batches of an epoch."""
        return (Batch(batch.x, batch.y) for batch in self._training.epoch(number))

    @cached_property
    def _training(self) -> TrainingBatches:
        recipe, site = self.recipe, self.site
        return TrainingBatches(
            site.data,
            self.rows,
            recipe.batch_size,
            normalisation=site.normalisation,
            targets=targets(recipe, site.data),
            augmentation=Augmentation(rotation=recipe.rotation) if recipe.augment else None,
            seed=self.seed,
            share=(self.peers.rank, self.peers.world),
            device=self.device,
        )


class Sites(TaskSource):
    """Sites one after another.

    Args:
        recipe: recipe of the method.
        sites: the photographs, ready for training.
        seed: seed of the run.
        device: device of network and batches.
        peers: processes that share every batch.

    Raises:
        UserError: the batch cannot be shared.
    """

    has_validation = True

    def __init__(
        self,
        recipe: Recipe,
        sites: Sequence[Prepared],
        seed: int,
        device: torch.device | str = "cpu",
        peers: Peers = ALONE,
    ) -> None:
        if recipe.batch_size % peers.world:
            raise UserError(
                f"batch_size = {recipe.batch_size} must be a multiple of the {peers.world} "
                "processes that share it"
            )
        self.recipe, self.sites, self.peers = recipe, sites, peers
        self.seed, self.device = seed, torch.device(device)

    def tasks(self) -> list[SiteTask]:
        """The sites in their order."""
        return [self._task(number, site) for number, site in enumerate(self.sites)]

    def together(self) -> SiteTask:
        """All sites as one task."""
        return self._task(0, self.whole)

    @cached_property
    def whole(self) -> Prepared:
        """All sites merged into one."""
        return together(self.sites)

    def _task(self, number: int, site: Prepared) -> SiteTask:
        key = (0, "site", number) if number else (0,)
        seed, rows = derived(self.seed, "batches", *key), np.asarray(site.split.train)
        return SiteTask(site, self.recipe, rows, seed, self.device, self.peers)

    def validate(self, method: Method, task: int) -> float:
        """The AUC on the site's validation part, in per cent; NaN if the part is empty."""
        recipe = self.recipe
        site = self.whole if method.needs_whole_stream else self.sites[task]
        rows = site.split.validation
        if not len(rows):
            return math.nan
        few = recipe.validation_samples if draws(recipe, type(method)) else method.eval_samples
        log_draws = predict(
            method,
            site.data,
            rows,
            normalisation=site.normalisation,
            samples=few,
            seed=derived(self.seed, "validation", *((0, "site", task) if task else (0,))),
            batch_size=recipe.batch_size,
            device=self.device,
        )
        return float(auc(site.data.photographs.referable[rows], probability(log_draws).numpy()))


def together(sites: Sequence[Prepared]) -> Prepared:
    """Merge all sites into one, with the name of the last, for a method that learns all at once.

    So scores after the last site are scores after all sites.
    """
    starts = np.cumsum([0, *(len(site.data) for site in sites[:-1])])
    parts = (
        np.concatenate([getattr(s.split, part) + at for s, at in zip(sites, starts, strict=True)])
        for part in ("train", "validation", "test")
    )
    data = FundusData.concatenate([site.data for site in sites])
    return replace(sites[-1], data=data, split=Split(*parts))


def trainer_of(
    recipe: Recipe, size: int, seed: int, device: torch.device | str = "cpu", peers: Peers = ALONE
) -> Trainer:
    """The trainer of a recipe's method on photographs of this size.

    Every process of `peers` draws separate weights; the penalty counts once.
    """
    method = start_of(recipe, size, seed, device)
    method.sample_by_sample = True
    truncation, network = recipe.truncation, method.network
    # Truncated noise has a separate sampler.
    method.gradients_are_read = truncation is not None

    def schedule(done: float) -> float:
        # Rounded, because an epoch's first step may be just below a whole number.
        epochs = math.floor(round(done * recipe.epochs, 6))
        return SCHEDULES[recipe.schedule](done) * recipe.learning_rate_decay**epochs

    return Trainer(
        method,
        optimizer=partial(make_optimizer, recipe),
        epochs=recipe.epochs,
        schedule=schedule,
        rates_by="step",
        kl_schedule=recipe.kl_schedule,
        seed=seeds(seed, peers.rank),
        select=recipe.select,
        patience=recipe.patience,
        inside=nullcontext if truncation is None else lambda: truncated(network, truncation),
        keep_states=True,
        peers=peers,
    )


def trained_method(
    recipe: Recipe, size: int, state: dict[str, Any], device: torch.device | str
) -> Method:
    """The recipe's method for photographs of this size, with a trained state."""
    method = method_of(recipe, size, device)
    method.load_state_dict(state)
    return method
