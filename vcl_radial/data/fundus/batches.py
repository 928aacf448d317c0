"""Batches of photographs: shuffled, changed at random, normalised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from vcl_radial.data.fundus.augment import Augmentation, Changes, apply_changes
from vcl_radial.data.fundus.data import FundusData, RowNumbers
from vcl_radial.errors import UserError, bad_value
from vcl_radial.system.seeds import seed_of

_CHUNK = 256


@dataclass(frozen=True)
class Normalisation:
    """x -> (x / 255 - mean) / std, for each channel.

    Attributes:
        mean: means of red, green and blue, from 0 to 1.
        std: their standard deviations.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def fit(cls, data: FundusData, rows: RowNumbers) -> Normalisation:
        """The normalisation with which these rows, the training set, have mean 0 and variance 1.

        It is exact: it counts the 256 values of a pixel, independently of the chunks.
        """
        counts = np.zeros((3, 256), np.int64)
        for start in range(0, len(rows), _CHUNK):
            pixels = data.images(rows[start : start + _CHUNK]).transpose(0, 1).flatten(1)
            counts += np.stack([torch.bincount(c, minlength=256).numpy() for c in pixels])
        values = np.arange(256) / 255
        mean = counts @ values / counts.sum(1)
        std = np.sqrt(counts @ values**2 / counts.sum(1) - mean**2)
        # A constant channel becomes 0.
        std[std < 1e-6] = 1.0
        return cls(tuple(mean.tolist()), tuple(std.tolist()))

    def __call__(self, images: Tensor) -> Tensor:
        """Normalise images `[B, 3, H, W]` of values from 0 to 255."""
        mean = torch.tensor(self.mean, device=images.device)[:, None, None]
        std = torch.tensor(self.std, device=images.device)[:, None, None]
        return (images.float() - 255 * mean) / (255 * std)


class Batch(NamedTuple):
    """Images `[B, 3, H, W]` float32, targets `[B]` int64, and the rows `[B]` of the table."""

    x: Tensor
    y: Tensor
    rows: Tensor


class TrainingBatches:
    """Batches for training: every epoch has a new order and new changes of every image.

    An epoch depends only on the seed and its number, so that a resumed run has the same epochs. The
    last batch is left out if it is smaller than the others.

    Args:
        data: the photographs.
        rows: rows to train on.
        batch_size: number of photographs in a step, over all processes together.
        normalisation: normalisation by the training set.
        targets: targets of all photographs, `[N]`; by default whether they are referable.
        augmentation: changes of the images; None for no changes.
        seed: seed of order and changes.
        share: `(rank, world)`; each process has its part of every batch, with the same changes as
            in a single process.
        device: device of the batches.
    """

    def __init__(
        self,
        data: FundusData,
        rows: RowNumbers,
        batch_size: int,
        *,
        normalisation: Normalisation,
        targets: Tensor | None = None,
        augmentation: Augmentation | None = None,
        seed: int = 0,
        share: tuple[int, int] = (0, 1),
        device: torch.device | str = "cpu",
    ) -> None:
        self.data, self.rows = data, np.asarray(rows, np.int64)
        self.batch_size, self.normalisation = batch_size, normalisation
        self.augmentation, self.seed = augmentation, seed
        self.share, self.device = share, torch.device(device)
        self._targets = data.classes() if targets is None else targets
        if (self._targets[self.rows] < 0).any():
            raise UserError(
                "photographs without a grade cannot be trained on", at=data.photographs.name
            )
        if batch_size < share[1]:
            raise bad_value(
                "batch_size", batch_size, f"must be at least the {share[1]} processes that share it"
            )
        if not len(self):
            raise bad_value(
                "batch_size",
                batch_size,
                f"is more than the {len(self.rows)} training photographs: choose a smaller one",
            )

    def __len__(self) -> int:
        """The batches of an epoch."""
        return len(self.rows) // self.batch_size

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch; the first one is number 0."""
        order = np.random.default_rng([self.seed, 1, number]).permutation(self.rows)
        for batch in range(len(self)):
            rows = order[batch * self.batch_size : (batch + 1) * self.batch_size]
            rank, world = self.share
            part = slice(rank * len(rows) // world, (rank + 1) * len(rows) // world)
            x = self.data.images(rows[part]).to(self.device, non_blocking=True)
            if self.augmentation is not None:
                seed = seed_of(self.seed, 2, number, batch)
                generator = torch.Generator().manual_seed(seed)
                changes = self.augmentation.draw(len(rows), generator)
                x = apply_changes(x, Changes(*(c[part] for c in changes)), self.data.surround)
            chosen = torch.from_numpy(rows[part])
            yield Batch(self.normalisation(x), self._targets[chosen].to(self.device), chosen)


def evaluation_batches(
    data: FundusData,
    rows: RowNumbers,
    batch_size: int,
    *,
    normalisation: Normalisation,
    targets: Tensor | None = None,
    device: torch.device | str = "cpu",
) -> Iterator[Batch]:
    """Batches for prediction: every row once, in this order, unchanged."""
    targets = data.classes() if targets is None else targets
    numbers = torch.as_tensor(rows)
    for start in range(0, len(numbers), batch_size):
        chosen = numbers[start : start + batch_size]
        x = data.images(chosen).to(device, non_blocking=True)
        yield Batch(normalisation(x), targets[chosen].to(device), chosen)
