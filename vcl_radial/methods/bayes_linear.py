"""Bayesian linear regression, carried forward exactly: nothing is approximate but the model.

    y ~ N(phi(x)'w, 1/tau),    w | tau ~ N(mean, (tau precision)^-1),    tau ~ Gamma(shape, rate)

phi(x) are features of the inputs and a 1. This normal-gamma prior is conjugate: a posterior is a
prior of the same kind, so that tasks that come one after the other, in whatever order, leave what
all their points at once do (Bishop 2006, exercises 3.12 and 3.13). Before the first task

    mean = 0,    precision = I / prior_scale^2,    Gamma(shape, rate) of the likelihood

A task is learned where it ends, in closed form: its steps do nothing. Predictions are Student-t,
with weights and noise integrated out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Gamma
from torch.optim import Optimizer

from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.mixture import Mixture
from vcl_radial.nn import SingleHead, VariationalWeights


@dataclass(frozen=True)
class NormalGamma:
    """A distribution over weights and noise precision; all tensors float64.

    Attributes:
        mean: `[D]`.
        precision: in units of tau, `[D, D]`.
        shape: of the Gamma distribution.
        rate: of the same.
    """

    mean: Tensor
    precision: Tensor
    shape: Tensor
    rate: Tensor

    @classmethod
    def prior(cls, d: int, prior_scale: float, shape: float, rate: float) -> NormalGamma:
        """N(0, prior_scale^2 / tau) for each of D weights."""
        return cls(
            torch.zeros(d, dtype=torch.float64),
            torch.eye(d, dtype=torch.float64) / prior_scale**2,
            torch.tensor(shape, dtype=torch.float64),
            torch.tensor(rate, dtype=torch.float64),
        )

    def update(self, points: Callable[[], Iterable[tuple[Tensor, Tensor]]]) -> NormalGamma:
        """The posterior after more points.

        Args:
            points: gives them in batches, features `[n, D]` and targets `[n]`; it is called twice.
        """
        precision, moment, count = self.precision.clone(), self.precision @ self.mean, 0
        for phi, y in points():
            precision.addmm_(phi.T, phi)
            moment.addmv_(phi.T, y)
            count += len(y)
        mean = _solve(precision, moment.unsqueeze(1)).squeeze(1)
        # Squares of differences: the usual y'y - m'Pm cancels where the noise is small.
        moved = mean - self.mean
        squares = moved @ self.precision @ moved
        for phi, y in points():
            squares = squares + (y - phi @ mean).square().sum()
        return NormalGamma(mean, precision, self.shape + count / 2, self.rate + squares / 2)

    def predictive(self, phi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The Student-t predictive of targets at features `[n, D]`: location, scale, degrees.

        St(y; 2 shape, phi'mean, sqrt(rate / shape (1 + phi' precision^-1 phi)))
        """
        spread = 1 + (phi * _solve(self.precision, phi.T).T).sum(1)
        return phi @ self.mean, (self.rate / self.shape * spread).sqrt(), 2 * self.shape

    def draw(self) -> Tensor:
        """Weights `[D]`, with the noise precision drawn too."""
        noise = torch.randn_like(self.mean).unsqueeze(1)
        root = torch.linalg.cholesky(self.precision)
        moved = torch.linalg.solve_triangular(root.mT, noise, upper=True).squeeze(1)
        precision: Tensor = Gamma(self.shape, self.rate).sample()
        drawn: Tensor = self.mean + moved / precision.sqrt()
        return drawn


def _solve(precision: Tensor, columns: Tensor) -> Tensor:
    return torch.cholesky_solve(columns, torch.linalg.cholesky(precision))


class LinearModel(nn.Module):
    """phi(x)'w `[B, 1]` at the posterior's mean in training, under a draw of it in evaluation.

    Args:
        body: gives features `[B, D - 1]` of inputs `[B, ...]`; it stays as it is.
        posterior: of the weights; the 1 has the last one.
    """

    precision: Tensor
    shape: Tensor
    rate: Tensor

    def __init__(self, body: nn.Module, posterior: NormalGamma) -> None:
        super().__init__()
        self.body = body.requires_grad_(False)
        self.mean = nn.Parameter(posterior.mean)
        for name in ("precision", "shape", "rate"):
            self.register_buffer(name, getattr(posterior, name))

    @property
    def posterior(self) -> NormalGamma:
        """Of the weights, as it is now."""
        return NormalGamma(self.mean.detach(), self.precision, self.shape, self.rate)

    @torch.no_grad()
    def take(self, posterior: NormalGamma) -> None:
        """Have another posterior."""
        self.mean.copy_(posterior.mean)
        self.precision, self.shape, self.rate = posterior.precision, posterior.shape, posterior.rate

    def features(self, x: Tensor) -> Tensor:
        """phi(x), `[B, D]` in float64.

        Raises:
            UserError: they are not as many as the posterior has weights for.
        """
        features = self.body(x).double()
        if features.shape[1:] != (len(self.mean) - 1,):
            raise UserError(
                f"a linear model of {len(self.mean) - 1} features, as many as the network's first "
                f"linear layer has inputs, was given {list(features.shape[1:])}: take a network "
                "of linear layers, or options.features = 'body'"
            )
        return torch.cat([features, torch.ones_like(features[:, :1])], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs `[B, 1]`, float64."""
        weights = self.mean if self.training else self.posterior.draw()
        return (self.features(x) @ weights).unsqueeze(1)


class BayesLinear(Method):
    """Carry the exact posterior of the weights and of the noise of a linear model forward.

    Memory is D^2 numbers in float64, the time of a task D^2 for each point and D^3 once.

    Args:
        network: of point estimates; a linear model takes its place.
        prior_scale: weights have the first prior N(0, prior_scale^2 / tau).
        features: phi(x): "inputs" for the inputs of the network, flattened; "body" for what the
            network gives to its one head, under the weights that it starts with, such as random
            ReLU units.
        settings: those of `Method`.

    Raises:
        UserError: the likelihood is not the Gaussian one of a number, the network's weights have a
            posterior or it has not these features, or an option is out of its range.
    """

    likelihoods = frozenset({"gaussian"})
    recipe_keys = frozenset({"eval_samples", "prior_scale"})
    closed_form = True
    network: LinearModel
    likelihood: Gaussian

    def __init__(
        self,
        network: nn.Module,
        *,
        prior_scale: float = 1.0,
        features: Literal["inputs", "body"] = "inputs",
        **settings: Any,
    ) -> None:
        if any(isinstance(module, VariationalWeights) for module in network.modules()):
            raise UserError(
                "BayesLinear has a posterior of its own over a linear model: set posterior = 'none'"
            )
        if not prior_scale > 0:
            raise UserError(f"prior_scale = {prior_scale} must be above 0")
        super().__init__(network, **settings)
        if not isinstance(self.likelihood, Gaussian):
            raise UserError(
                "BayesLinear infers the noise of one number: its likelihood is "
                "vcl_radial.likelihoods.Gaussian()"
            )
        body, count = _features(network, features)
        prior = NormalGamma.prior(count + 1, prior_scale, *self.likelihood.prior)
        self.network, self.with_task = LinearModel(body, prior), False

    def learn(self, batch: Batch, optimizer: Optimizer) -> Tensor:
        """Nothing: a task is learned where it ends."""
        return torch.zeros(())

    def settle(self, **of_draws: Any) -> None:
        """Nothing: the noise is part of the posterior."""

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        """Add the task's points to the posterior."""
        model = self.network
        posterior = model.posterior.update(
            lambda: ((model.features(x), y.double()) for (x, *_), y in self.points())
        )
        model.take(posterior)
        noise = self.likelihood.noise
        noise.shape, noise.rate = posterior.shape.float().cpu(), posterior.rate.float().cpu()

    def predict(
        self,
        x: Tensor,
        task: int | Tensor = 0,
        *,
        number: int | None = None,
        differentiable: bool = False,
    ) -> Mixture:
        """The Student-t predictive in closed form."""
        with torch.set_grad_enabled(differentiable and torch.is_grad_enabled()):
            mean, scale, degrees = self.network.posterior.predictive(self.network.features(x))
        return Mixture(mean[None], scale[None], degrees[None])


def _features(network: nn.Module, kind: str) -> tuple[nn.Module, int]:
    """What gives the features, and how many.

    Raises:
        UserError: the network has none of this kind.
    """
    if kind == "inputs":
        linear = (module for module in network.modules() if isinstance(module, nn.Linear))
        if (first := next(linear, None)) is not None:
            return nn.Flatten(), first.in_features
    elif kind == "body":
        head = getattr(network, "head", None)
        if isinstance(head, SingleHead) and isinstance(head.output, nn.Linear):
            network.head = _NoHead()
            return network, head.output.in_features
    raise UserError(
        f"options.features = {kind!r}: the network has none: choose 'inputs', with a network of "
        "linear layers, or 'body', with one that has a head for all tasks"
    )


class _NoHead(nn.Module):
    def forward(self, x: Tensor, task: int | Tensor) -> Tensor:
        return x
