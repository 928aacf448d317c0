"""The penalty and the loss at the start of task 2, as functions of the weights.

Everything is computed in a trial that is ready for its first step, without taking it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.conformance.trial import Trial, seed

BATCHES = 16, 64
"""Batch sizes to compare, in points."""

MOVE = 0.01
"""Distance by which the weights are moved, in root mean squares of each parameter."""

FAR = 30.0
"""Factor of that distance if a part of the penalty may be small."""

SHUFFLES = 3
"""Number of epochs over which the loss is averaged for each batch size."""

Tensors = dict[str, Tensor]


class Penalty:
    """The penalty at the start of task 2, at and around the weights where task 1 ended, in nats.

    Args:
        trial: a new trial, which is trained on task 1.

    Attributes:
        start: the weights where task 1 ended, without the heads of other tasks.
        move: a random change of these weights.
    """

    def __init__(self, trial: Trial) -> None:
        trial.train_next()
        self.trial, self.method = trial, trial.method
        self.other_heads = {h: starts for h, starts in trial.head_prefixes().items() if h != 0}
        prefixes = tuple(start for starts in self.other_heads.values() for start in starts)
        weights = trial.method.network.named_parameters()
        self.start = {n: w.detach().clone() for n, w in weights if not n.startswith(prefixes)}
        generator = torch.Generator().manual_seed(0)
        self.move = {
            name: MOVE
            * value.square().mean().sqrt()
            * torch.randn(value.shape, generator=generator)
            for name, value in self.start.items()
        }
        trial.begin_next()
        self.method.loss_value = True
        self.points = len(trial.points.y)
        self.batch = next(trial.batches(BATCHES[0], drop_last=True))

    @cached_property
    def at_start(self) -> float:
        """The penalty where task 1 ended."""
        self.go_to()
        return self.value()

    @cached_property
    def random(self) -> bool:
        """Whether the penalty there changes with the seed."""
        self.go_to()
        return self.value() != self.value(drawn_from=3)

    @cached_property
    def moved(self) -> tuple[Tensor, Tensor]:
        """The penalties in batches of each size, at the moved weights `[n]`."""
        self.go_to(1.0)
        small, large = map(self.in_batches, BATCHES)
        return small, large

    @cached_property
    def rise(self) -> float:
        """Rise of the penalty from where task 1 ended to the moved weights."""
        return float(self.moved[0].mean()) - self.at_start

    @cached_property
    def slope(self) -> float:
        """Derivative of the penalty along the move at the moved weights, by autograd."""
        self.go_to(1.0)
        gradient = self.gradient()
        return float(sum((gradient[name] * move).sum() for name, move in self.move.items()))

    @property
    def present(self) -> bool:
        """Whether the penalty depends on the weights that task 1 trained."""
        return self.rise != 0 or self.slope != 0

    @cached_property
    def drop(self) -> float:
        """Decrease of the penalty along its steepest descent from where task 1 ended."""
        self.go_to()
        gradient = self.gradient()
        reach, steepness = norm(self.start), norm(gradient)
        if steepness == 0:
            return 0.0
        lowest = self.at_start
        for k in range(6, 0, -1):
            self.go_to(-(10.0**-k) * reach / steepness, gradient)
            lowest = min(lowest, self.value())
        return self.at_start - lowest

    @property
    def tolerance(self) -> float:
        """Largest drop that may be rounding: float32 sums thousands of terms."""
        return 1e-3 * abs(self.at_start) + 1e-3 * max(self.rise, 0.0)

    @cached_property
    def rise_afar(self) -> float:
        """Rise of the mean penalty from where task 1 ended to weights far away."""
        self.go_to(FAR)
        far = self.in_batches(BATCHES[0]).mean()
        self.go_to()
        return float(far - self.in_batches(BATCHES[0]).mean())

    @cached_property
    def held_heads(self) -> list[int]:
        """Tasks from 2 on with untrained heads that the penalty holds to their random weights."""
        self.go_to()
        return [head + 1 for head, starts in self.other_heads.items() if self._holds(starts)]

    def _holds(self, starts: tuple[str, ...]) -> bool:
        """Whether the penalty rises both as a head's weights grow and as they shrink by a tenth.

        A first prior pulls random weights in one direction: the penalty falls in that direction. A
        penalty that rises in both directions has its minimum at the weights themselves.
        """
        parameters = self.method.network.named_parameters()
        weights = {n: w.detach().clone() for n, w in parameters if n.startswith(starts)}
        values = []
        for factor in (0.9, 1.1, 1.0):
            self._set({name: factor * value for name, value in weights.items()})
            values.append(self.value())
        *changed, unchanged = values
        return min(changed) > unchanged + 1e-5 * abs(unchanged)

    def go_to(self, times: float = 0.0, move: Tensors | None = None) -> None:
        """Set the weights to those where task 1 ended, plus a multiple of a move."""
        move = self.move if move is None else move
        self._set({n: w + times * move[n] if times else w for n, w in self.start.items()})

    @torch.no_grad()
    def _set(self, weights: Tensors) -> None:
        parameters = dict(self.method.network.named_parameters())
        for name, value in weights.items():
            parameters[name].copy_(value)

    def value(self, drawn_from: int = 2) -> float:
        """The penalty in a batch at the current weights."""
        return self.trial.look(self.batch, number, drawn_from)[0]

    def in_batches(self, size: int) -> Tensor:
        """The penalties in all full batches of a size at the current weights `[n]`."""
        batches = self.trial.batches(size, drop_last=True)
        return torch.tensor([self.trial.look(batch, number)[0] for batch in batches]).double()

    def gradient(self) -> Tensors:
        """The gradient of the penalty at the current weights."""
        parameters = dict(self.method.network.named_parameters())
        weights: list[nn.Parameter] = [parameters[name] for name in self.start]

        def gradient(penalty: Any) -> Sequence[Tensor]:
            if not (isinstance(penalty, Tensor) and penalty.requires_grad):
                return [torch.zeros_like(weight) for weight in weights]
            return torch.autograd.grad(
                penalty.sum(), weights, retain_graph=True, materialize_grads=True
            )

        return dict(zip(self.start, self.trial.look(self.batch, gradient)[0], strict=True))

    def loss(self, kl_weight: float) -> float:
        """The loss of the batch at a weight of the penalty, in nats per point."""
        original, self.method.kl_weight = self.method.kl_weight, kl_weight
        loss = self.trial.look(self.batch, lambda penalty: None)[1]
        self.method.kl_weight = original
        return loss

    def losses(self, size: int) -> Tensor:
        """The mean losses of epochs in batches of a size where task 1 ended `[SHUFFLES]`."""
        self.go_to()
        return torch.tensor([self._epoch(size, shuffle) for shuffle in range(SHUFFLES)])

    def _epoch(self, size: int, shuffle: int) -> float:
        seed(3, shuffle)
        total, points = 0.0, 0
        for batch in self.trial.batches(size, drop_last=False):
            total += self.trial.look(batch, lambda penalty: None)[1] * len(batch.y)
            points += len(batch.y)
        return total / points


def number(penalty: Any) -> float:
    """A penalty as the base class adds it: 0 if it is neither a tensor nor a number."""
    if isinstance(penalty, Tensor):
        return float(penalty.detach().sum())
    return float(penalty) if isinstance(penalty, int | float) else 0.0


def norm(tensors: Tensors) -> float:
    """Euclidean norm of all tensors together."""
    return float(torch.stack([t.square().sum() for t in tensors.values()]).sum().sqrt())
