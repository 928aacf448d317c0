"""The penalty and the loss at the start of task 2, at and around the consolidated weights.

Everything is computed at fixed weights in a trial that is ready for its first batch, without a
step. The same seed is set before each pass, so that a penalty that draws is also a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from vcl_radial.conformance.trial import Trial, seed

BATCHES = 16, 64
"""Batch sizes to compare, in points."""

MOVE = 0.01
"""Distance by which the weights are moved, in root mean squares of each parameter."""

FAR = 30.0
"""Factor of that distance if a part of the penalty may be small."""

SHUFFLES = 3
"""Number of epochs over which the loss is averaged for each batch size."""


T = TypeVar("T")


@dataclass(frozen=True)
class PenaltyView:
    """Measurements of the penalty and the loss, in nats unless stated otherwise.

    Attributes:
        at_consolidated: penalty at the weights where task 1 ended.
        random: whether the penalty there changes with the seed.
        moved: mean penalty of the batches of each size, at the moved weights `[2]`.
        spread: standard error of the difference of these two.
        moved_half: mean penalty at the moved weights if task 2 has half as many training points.
        drop: decrease of the penalty along its steepest descent from where task 1 ended.
        slope, quotient: derivative of the penalty along the move at the moved weights: by autograd,
            and by the difference quotient of its values.
        gradient_error: relative distance between its gradients without and with `loss_value`.
        term: contribution of the penalty to a batch's loss at penalty weight 1, nats per point.
        loss: loss of that batch, nats per point.
        points: N, the number of training points of task 2.
        losses: mean loss of an epoch where task 1 ended, nats per point `[2, SHUFFLES]`.
        held_heads: tasks from 2 on with untrained heads that the penalty holds to their random
            weights.
    """

    at_consolidated: float
    random: bool
    moved: Tensor
    spread: float
    moved_half: float
    drop: float
    slope: float
    quotient: float
    gradient_error: float
    term: float
    loss: float
    points: int
    losses: Tensor
    held_heads: tuple[int, ...]

    @property
    def rise(self) -> float:
        """Rise of the penalty from where task 1 ended to the moved weights."""
        return float(self.moved[0]) - self.at_consolidated

    @property
    def present(self) -> bool:
        """Whether the penalty depends on the weights that task 1 trained."""
        return self.rise != 0 or self.slope != 0

    @property
    def without_gradient(self) -> bool:
        """Whether the penalty's value depends on the weights but its gradient is 0."""
        return self.present and self.slope == 0

    @property
    def tolerance(self) -> float:
        """Largest drop that may be rounding: float32 sums thousands of terms."""
        return 1e-3 * abs(self.at_consolidated) + 1e-3 * max(self.rise, 0.0)


def view_penalty(make_trial: Callable[[], Trial]) -> PenaltyView:
    """Measure at the start of task 2, with half of its training points and with all of them."""
    fewer, full = _Look(make_trial()), _Look(make_trial())
    moved_half = fewer.trial.at_start(fewer.moved, half)
    return full.trial.at_start(lambda: full.view(moved_half))


def rise_afar(trial: Trial) -> tuple[float, dict[str, Tensor]]:
    """Rise of the penalty far from where task 1 ended, and the weights where it ended.

    The trial is trained on task 1 first; the same trial has the same numbers, to the last bit.

    Returns:
        Nats, and tensors by parameter name, without the heads of other tasks.
    """
    look = _Look(trial)
    return trial.at_start(look.rise_afar), look.start


def half(rows: Tensor) -> Tensor:
    """The first half of a task."""
    return rows[: len(rows) // 2]


class _Look:
    """A trial after task 1, and functions to call at the start of task 2."""

    def __init__(self, trial: Trial) -> None:
        trial.train_next()
        self.trial, self.learner = trial, trial.learner
        self.other_heads = {h: starts for h, starts in trial.head_prefixes().items() if h != 0}
        prefixes = tuple(start for starts in self.other_heads.values() for start in starts)
        self.start = {
            name: parameter.detach().clone()
            for name, parameter in trial.model.named_parameters()
            if not name.startswith(prefixes)
        }
        generator = torch.Generator().manual_seed(0)
        self.move = {
            name: MOVE
            * value.square().mean().sqrt()
            * torch.randn(value.shape, generator=generator)
            for name, value in self.start.items()
        }

    def moved(self, times: float = 1.0) -> Tensor:
        """The penalties at the moved weights, for every batch of the first size."""
        self.learner.loss_value = True
        self._go_to({name: times * move for name, move in self.move.items()})
        return self._over_batches(BATCHES[0])

    def rise_afar(self) -> float:
        """The mean penalty of batches of the first size, far away minus where task 1 ended."""
        far = self.moved(FAR)
        self._go_to()
        return float(far.mean() - self._over_batches(BATCHES[0]).mean())

    def view(self, moved_half: Tensor) -> PenaltyView:
        learner, move = self.learner, self.move
        small, large = self.moved(), self._over_batches(BATCHES[1])
        gradient = self._gradient()
        learner.loss_value = False
        cheap = self._gradient()
        learner.loss_value = True
        term, loss = self._term()
        ahead, behind = (self._value({n: f * m for n, m in move.items()}) for f in (1.1, 0.9))
        at_consolidated = self._value()
        return PenaltyView(
            at_consolidated=at_consolidated,
            random=at_consolidated != self._pass(_number, drawn_from=3),
            moved=torch.stack([small.mean(), large.mean()]),
            spread=float((small.var() / len(small) + large.var() / len(large)).sqrt()),
            moved_half=float(moved_half.mean()),
            drop=at_consolidated - min(self._descent()),
            slope=float(sum((gradient[n] * m).sum() for n, m in move.items())),
            quotient=(ahead - behind) / 0.2,
            gradient_error=_norm({n: cheap[n] - g for n, g in gradient.items()})
            / max(_norm(gradient), 1e-30),
            term=term,
            loss=loss,
            points=self.trial.points,
            losses=torch.tensor([[self._epoch(n, k) for k in range(SHUFFLES)] for n in BATCHES]),
            held_heads=tuple(
                head + 1 for head, names in self.other_heads.items() if self._holds(names)
            ),
        )

    def _holds(self, starts: tuple[str, ...]) -> bool:
        """Whether the penalty rises both as a head's weights grow and as they shrink by a tenth.

        A first prior pulls random weights in one direction: the penalty falls in that direction. A
        penalty that rises in both directions has its minimum at the weights themselves.
        """
        self._go_to()
        parameters = self.trial.model.named_parameters()
        weights = [weight for name, weight in parameters if name.startswith(starts)]
        original = [weight.detach().clone() for weight in weights]
        values = []
        for factor in (1.0, 0.9, 1.1):
            with torch.no_grad():
                for weight, value in zip(weights, original, strict=True):
                    weight.copy_(factor * value)
            values.append(self._pass(_number))
        with torch.no_grad():
            for weight, value in zip(weights, original, strict=True):
                weight.copy_(value)
        return min(values[1:]) > values[0] + 1e-5 * abs(values[0])

    @torch.no_grad()
    def _go_to(self, move: dict[str, Tensor] | None = None) -> None:
        """Set the weights to those at the end of task 1, plus a move."""
        parameters = dict(self.trial.model.named_parameters())
        for name, value in self.start.items():
            parameters[name].copy_(value if move is None else value + move[name])

    def _pass(self, look: Callable[[Any], T], drawn_from: int = 2) -> T:
        return self.trial.look(look, drawn_from)[0]

    def _value(self, move: dict[str, Tensor] | None = None) -> float:
        self._go_to(move)
        return self._pass(_number)

    def _over_batches(self, size: int) -> Tensor:
        full = self.trial.batches(size, only_full=True)
        return torch.tensor([self._pass(_number) for _ in full]).double()

    def _gradient(self) -> dict[str, Tensor]:
        parameters = dict(self.trial.model.named_parameters())
        weights = [parameters[name] for name in self.start]

        def gradient(penalty: Any) -> Sequence[Tensor]:
            if not (isinstance(penalty, Tensor) and penalty.requires_grad):
                return [torch.zeros_like(weight) for weight in weights]
            return torch.autograd.grad(
                penalty.sum(), weights, retain_graph=True, materialize_grads=True
            )

        return dict(zip(self.start, self._pass(gradient), strict=True))

    def _descent(self) -> list[float]:
        """The penalty where task 1 ended, and at growing distances down its gradient."""
        self._go_to()
        gradient = self._gradient()
        reach, steepness = _norm(self.start), _norm(gradient)
        if steepness == 0:
            return [self._value()]
        steps = [0.0, *(10.0**-k * reach / steepness for k in range(6, 0, -1))]
        return [self._value({n: -step * g for n, g in gradient.items()}) for step in steps]

    def _loss(self) -> float:
        return self.trial.look(lambda penalty: None)[1]

    def _term(self) -> tuple[float, float]:
        learner, weight = self.learner, self.learner.kl_weight
        losses = []
        for factor in (0.0, 1.0):
            learner.kl_weight = factor
            losses.append(self._loss())
        learner.kl_weight = weight
        return losses[1] - losses[0], losses[1]

    def _epoch(self, size: int, shuffle: int) -> float:
        self._go_to()
        seed(3, shuffle)
        total, points = 0.0, 0
        for n in self.trial.batches(size, only_full=False):
            total += self._loss() * n
            points += n
        return total / points


def _number(penalty: Any) -> float:
    """A penalty as the base class adds it: 0 if it is neither a tensor nor a number."""
    if isinstance(penalty, Tensor):
        return float(penalty.detach().sum())
    return float(penalty) if isinstance(penalty, int | float) else 0.0


def _norm(tensors: dict[str, Tensor]) -> float:
    return float(torch.stack([t.square().sum() for t in tensors.values()]).sum().sqrt())
