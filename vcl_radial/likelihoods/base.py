"""The likelihoods of the suite: how a network's outputs predict targets.

A likelihood turns outputs f(x; w) under draws of the weights into a loss, a predictive
distribution, and a root of the Hessian of the negative log-likelihood in the outputs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    logsigmoid,
    one_hot,
)

from vcl_radial.errors import DataError, UserError
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.noise_precision import BATCH_STEP, NoisePrecision
from vcl_radial.likelihoods.objectives import categorical_nll
from vcl_radial.likelihoods.predict import sampling


class Likelihood(ABC):
    """A likelihood p(y | f), with f the outputs of a network."""

    name: ClassVar[str]
    """The name by which methods declare the likelihoods that they support."""

    @abstractmethod
    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """-log p(y | f) averaged over samples and points, a scalar in nats.

        Shapes: outputs `[S, B, C]` (one slice per weight sample) or `[B, C]`, targets `[B]`.
        """

    def logits(self, outputs: Tensor) -> Tensor:
        """Outputs `[..., B, C]` as logits of classes, for methods that use logits in training."""
        return outputs

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """Log-probabilities of classes from outputs `[..., B, C]`, of the same shape; nats."""
        return self.logits(outputs).log_softmax(-1)

    @abstractmethod
    def mean_output(self, outputs: Tensor) -> Tensor:
        """The mean output of the samples `[S, B, C]`, shape `[B, C]`."""

    @abstractmethod
    def predictive(self, outputs: Tensor) -> Any:
        """The predictive p(y | x) from outputs under draws of the weights, `[S, B, C]`."""

    def prediction(self, outputs: Tensor) -> tuple[Any, Tensor | None]:
        """The predictive, and its spread over the draws `[S, B, C]`: `predict.sampling`, `[B]`.

        The spread is None where no class is predicted.
        """
        return self.predictive(outputs), None

    @abstractmethod
    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """Columns of S with S S' = Hessian of -log p(y | f) in f; outputs and columns `[B, C]`."""

    @abstractmethod
    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The gradient of -log p(y | f) in f, `[B, C]`."""

    def check(self, targets: Tensor, outputs: int) -> None:  # noqa: B027 - optional in subclasses
        """Check that targets fit a head with this number of outputs, before training.

        Raises:
            DataError: They do not fit; the message names the targets and the values that fit.
        """

    # A likelihood with its own parameters learns them in these methods.

    def begin_task(self, points: int) -> None:  # noqa: B027 - most have nothing to learn
        """Make the posterior after earlier tasks the prior of a task with N points."""

    def observe(self, outputs: Tensor, targets: Tensor) -> None:  # noqa: B027
        """Learn from the outputs of a training step, after the step; shapes as in `nll`."""

    def fit(self, batches: Iterable[tuple[Tensor, Tensor]]) -> None:  # noqa: B027
        """Set the optimum for the outputs of all points of a task, after training.

        Args:
            batches: outputs `[S, B, C]` and targets `[B]`, batch by batch.
        """

    def state_dict(self) -> dict[str, Tensor]:
        """The learned parameters."""
        return {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:  # noqa: B027
        """Restore the parameters of a `state_dict`."""


class Categorical(Likelihood):
    """One of C classes: p(y | f) = softmax(f)_y, with f the logits."""

    name = "categorical"

    def check(self, targets: Tensor, outputs: int) -> None:
        """Check that targets are numbers of classes, int64 `[B]`."""
        expected = f"a head of {outputs} outputs takes int64 labels [B] from 0 to {outputs - 1}"
        _check_form(targets, targets.dtype == torch.int64, expected)
        lowest, highest = (int(end) for end in targets.aminmax())
        if lowest < 0 or highest >= outputs:
            raise DataError(f"labels from {lowest} to {highest}: {expected}")

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy."""
        return categorical_nll(outputs, targets)

    def nll_per_point(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The NLL of each point, `[..., B]`; outputs `[..., B, C]`, targets `[..., B]`."""
        logits = outputs.flatten(0, -2).float()
        return cross_entropy(logits, targets.flatten(), reduction="none").view(targets.shape)

    def mean_output(self, outputs: Tensor) -> Tensor:
        """The log of the mean probability over the samples, nats."""
        return self.log_probabilities(outputs).logsumexp(0) - math.log(len(outputs))

    def predictive(self, outputs: Tensor) -> Tensor:
        """The log-predictive log 1/S sum_s softmax(f_s), `[B, C]` in nats."""
        return self.mean_output(outputs)

    def prediction(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """The log-predictive, and its spread over the draws."""
        return _prediction(self.log_probabilities(outputs))

    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """S with S S' = diag(p) - p p'; its column c is sqrt(p_c) (p - e_c)."""
        p, unit = outputs.softmax(-1), torch.eye(outputs.shape[-1]).to(outputs)
        return [p[:, c, None].sqrt() * (p - unit[c]) for c in range(len(unit))]

    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The residual p - e_y."""
        return outputs.softmax(-1) - one_hot(targets, outputs.shape[-1])


class OneHot(Categorical):
    """One of C classes, with Gaussian noise on its one-hot label: e_y ~ N(f / s, v I).

    Bayes' rule over the C labels gives p(y | f) = softmax(f / (s v))_y. The loss has the curvature
    1 / (s^2 v) in every output, even where the network is right and confident, so that the
    contribution of a task to the posterior's precision does not vanish during training. The
    curvature of a softmax, diag(p) - p p', does vanish. Squared errors on scaled labels: Hui and
    Belkin 2021.

    Args:
        variance: v, the variance of the noise.
        scale: s, the output for a label. With a large s, the weights move far and the network
            learns features; with a small s, the weights stay near the start (Chizat, Oyallon and
            Bach 2019).
    """

    name = "one-hot"

    def __init__(self, variance: float = 0.1, scale: float = 1.0) -> None:
        self.variance, self.scale = variance, scale

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean of |f / s - e_y|^2 / (2 v) + C / 2 log(2 pi v)."""
        return self.nll_per_point(outputs, targets).mean()

    def nll_per_point(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The NLL of each point, `[..., B]`; targets `[B]` or `[..., B]`."""
        squares = self._errors(outputs, targets).square().sum(-1)
        constant = outputs.shape[-1] / 2 * math.log(2 * math.pi * self.variance)
        return squares / (2 * self.variance) + constant

    def logits(self, outputs: Tensor) -> Tensor:
        """The logits f / (s v)."""
        return outputs / (self.scale * self.variance)

    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """Column c is e_c / (s sqrt(v)), whatever the outputs."""
        unit = torch.eye(outputs.shape[-1]).to(outputs) / (self.scale * math.sqrt(self.variance))
        return [column.expand_as(outputs) for column in unit]

    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The residual (f / s - e_y) / (s v)."""
        return self.logits(self._errors(outputs, targets))

    def _errors(self, outputs: Tensor, targets: Tensor) -> Tensor:
        classes = torch.arange(outputs.shape[-1], device=outputs.device)
        return outputs / self.scale - (targets.unsqueeze(-1) == classes).to(outputs)


class Bernoulli(Likelihood):
    """A binary target: p(y = 1 | f) = sigmoid(f), with one output f `[B, 1]`."""

    name = "bernoulli"

    def check(self, targets: Tensor, outputs: int) -> None:
        """Check that targets are 0 or 1 `[B]`, and that there is one output."""
        expected = f"a binary target is 0 or 1, shape [B], with one output; there are {outputs}"
        _check_form(targets, outputs == 1, expected)
        if wrong := targets[(targets != 0) & (targets != 1)].tolist():
            raise DataError(f"a target is {wrong[0]}: {expected}")

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean binary cross-entropy."""
        logits = outputs.squeeze(-1)
        return binary_cross_entropy_with_logits(logits, targets.to(logits).expand_as(logits))

    def mean_output(self, outputs: Tensor) -> Tensor:
        """The logit of the mean probability over the samples."""
        yes, no = logsigmoid(outputs).logsumexp(0), logsigmoid(-outputs).logsumexp(0)
        return yes - no

    def predictive(self, outputs: Tensor) -> Tensor:
        """The log-predictive log 1/S sum_s p_s of 0 and of 1, `[B, 2]` in nats."""
        return self.prediction(outputs)[0]

    def prediction(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """The log-predictive, and its spread over the draws."""
        return _prediction(torch.cat([logsigmoid(-outputs), logsigmoid(outputs)], dim=-1))

    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """The only column, sqrt(p (1 - p))."""
        p = outputs.sigmoid()
        return [(p * (1 - p)).sqrt()]

    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The residual p - y."""
        return outputs.sigmoid() - targets.to(outputs).unsqueeze(-1)


def _prediction(log_draws: Tensor) -> tuple[Tensor, Tensor]:
    """The log-predictive and `sampling` of log-probabilities under draws, `[S, B, C]`."""
    log_probs = log_draws.logsumexp(0) - math.log(len(log_draws))
    return log_probs, sampling(log_draws, log_probs)


class Gaussian(Likelihood):
    """A real target with Gaussian noise of a learned precision: y ~ N(f, 1 / tau), f `[B, 1]`.

    The posterior of tau is the Gamma distribution of `NoisePrecision`, carried from task to task;
    the network's loss and gradients use E tau.

    Args:
        noise_shape: shape of the Gamma prior of tau.
        noise_rate: rate of the Gamma prior of tau.
        initial_precision: initial value of E tau.
    """

    name = "gaussian"

    def __init__(
        self, noise_shape: float = 1.0, noise_rate: float = 1e-3, initial_precision: float = 1.0
    ) -> None:
        self.prior, self.start = (noise_shape, noise_rate), initial_precision
        self.noise = NoisePrecision(torch.tensor(0), self.prior, initial_precision)
        self._has_begun = False

    def begin_task(self, points: int) -> None:
        """Make the posterior of tau the prior of a task of N points."""
        N = torch.tensor(points)
        if self._has_begun:
            self.noise = self.noise.carry(N)
        else:
            self.noise = NoisePrecision(N, self.prior, self.start)
        self._has_begun = True

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean NLL, expected over tau: E tau / 2 (y - f)^2 + (log 2 pi - E log tau) / 2."""
        squares = _errors(outputs, targets).square().mean()
        constant = (math.log(2 * math.pi) - self.noise.mean_log) / 2
        nll: Tensor = self.noise.mean.to(squares) / 2 * squares + constant.to(squares)
        return nll

    def check(self, targets: Tensor, outputs: int) -> None:
        """Check that targets are finite numbers `[B]`, and that there is one output."""
        expected = f"a real target has the shape [B] and one output; there are {outputs}"
        _check_form(targets, outputs == 1 and targets.dtype != torch.bool, expected)
        if not (finite := targets.isfinite()).all():
            raise DataError(
                f"targets hold {targets[~finite][0]} in {int((~finite).sum())} of {len(targets)} "
                "points: they must be finite numbers"
            )

    @torch.no_grad()
    def observe(self, outputs: Tensor, targets: Tensor) -> None:
        """Move the posterior of tau one step towards its optimum for a batch."""
        squares = _errors(outputs, targets).square().mean()
        self.noise.update(squares.to(self.noise.rate), BATCH_STEP)

    @torch.no_grad()
    def fit(self, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Set the posterior of tau to its optimum for E mean (y - f)^2 over all points."""
        total, points = torch.zeros(()), 0
        for outputs, targets in batches:
            total += _errors(outputs, targets).square().mean(0).sum().cpu()
            points += len(targets)
        self.noise.update(total / points)

    def mean_output(self, outputs: Tensor) -> Tensor:
        """The mean over the samples."""
        return outputs.mean(0)

    def predictive(self, outputs: Tensor) -> Mixture:
        """A mixture of Student-t distributions, one per sample, with tau integrated out."""
        return Mixture.under_noise(outputs.squeeze(-1), self.noise)

    def hessian_root(self, outputs: Tensor, targets: Tensor) -> list[Tensor]:
        """The only column, sqrt(E tau)."""
        return [self.noise.mean.to(outputs).sqrt().expand_as(outputs)]

    def residual(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The residual E tau (f - y)."""
        return self.noise.mean.to(outputs) * (outputs - targets.to(outputs).unsqueeze(-1))

    def state_dict(self) -> dict[str, Tensor]:
        """N, and the Gamma distributions before and after the task's data."""
        return self.noise.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore the parameters of a `state_dict`."""
        self._has_begun = int(state["points"]) > 0
        for name, value in state.items():
            setattr(self.noise, name, value.clone())


def _check_form(targets: Tensor, fits: bool, expected: str) -> None:
    """Raise a DataError if the targets are not `[B]` or `fits` is false."""
    if targets.dim() != 1 or not fits:
        kind = str(targets.dtype).removeprefix("torch.")
        raise DataError(f"{kind} targets of shape {list(targets.shape)}: {expected}")


def _errors(outputs: Tensor, targets: Tensor) -> Tensor:
    """The errors f - y of real targets, `[..., B]`, from outputs `[..., B, 1]`."""
    f = outputs.squeeze(-1)
    if targets.shape != f.shape[-1:]:
        raise UserError(
            f"targets of shape {list(targets.shape)} do not fit outputs of shape "
            f"{list(outputs.shape)}: real targets need the shape {list(f.shape[-1:])}"
        )
    return f - targets
