"""Variational online Gauss-Newton, with a Gaussian prior of any mean and precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.errors import UserError
from vcl_radial.optimizers import WeightPosterior


class GradientSquares:
    """Squares of the gradients of single rows, averaged, of all linear layers of a network.

        h = 1/R sum_i g_i^2,    g_i the gradient of row i's own loss

    gathered in the backward pass of a loss that is a mean over R rows: for y = W x with the
    gradient d_i of row i's loss with respect to y, the square of W's is d_i^2 (x_i^2)'. Several
    passes (draws of the weights) are several sets of rows. Each layer is to be used once in a pass.

    Args:
        network: the module to watch, until `close` is called.

    Raises:
        UserError: a parameter belongs to something other than `torch.nn.Linear`.
    """

    def __init__(self, network: nn.Module) -> None:
        self._sums: dict[Tensor, Tensor] = {}
        self._rows: dict[Tensor, int] = {}
        layers = [m for m in network.modules() if list(m.parameters(recurse=False))]
        for layer in layers:
            if not isinstance(layer, nn.Linear):
                raise UserError(
                    f"VOGN knows the gradients of single rows in linear layers only, and the "
                    f"network has a {type(layer).__name__}"
                )
        self._hooks = [self._watch(layer) for layer in layers if isinstance(layer, nn.Linear)]

    def _watch(self, layer: nn.Linear) -> Any:
        # Taken now: while a pass draws the weights, the layer holds the draw in their place.
        weight, bias = layer.weight, layer.bias

        def remember(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if not output.requires_grad:
                return
            x = inputs[0].detach()

            def add(gradient: Tensor) -> None:
                squares = gradient.square()
                self._add(weight, squares.T @ x.square(), len(x))
                if bias is not None:
                    self._add(bias, squares.sum(0), len(x))

            output.register_hook(add)  # type: ignore[no-untyped-call]

        return layer.register_forward_hook(remember)

    def _add(self, parameter: Tensor, squares: Tensor, rows: int) -> None:
        known = self._sums.get(parameter)
        self._sums[parameter] = squares if known is None else known.add_(squares)
        self._rows[parameter] = self._rows.get(parameter, 0) + rows

    def take(self) -> dict[Tensor, Tensor]:
        """The averages of what was gathered since the last call, by parameter."""
        # The loss is a mean over R rows, so a row's own gradient is R times what was seen.
        averages = {p: total.mul_(self._rows[p]) for p, total in self._sums.items()}
        self._sums, self._rows = {}, {}
        return averages

    def close(self) -> None:
        """Watch the network no longer."""
        for hook in self._hooks:
            hook.remove()


class VOGN(Optimizer):
    """Natural-gradient variational inference with the squares of single rows' gradients.

    With g and h the mean gradient and the mean squared row gradient at weights drawn from q, and
    delta = prior_precision / ess:

        s    <- beta2 s + (1 - beta2) h
        m    <- beta1 m + (1 - beta1) (g + delta (mean - prior_mean))
        mean <- mean - lr m / (1 - beta1^t) / (s + delta + damping)
        precision = ess (s + delta)

    The fixed point is stationary for E_q[mean NLL] + KL(q || p) / ess with the Hessian of the NLL
    replaced by the sum of squared row gradients.

    Source: Khan et al. 2018 (VOGN); momentum and damping as in Osawa et al. 2019. The prior
    N(0, 1/prior_precision) is widened here to one with a mean and a precision for each weight, and
    the momentum has Adam's correction for its start at 0.

    Args:
        posteriors: of the parameters to train; s starts where it gives their present precision.
        squares: gathers h.
        lr: the step, about 1 at most.
        ess: effective sample size, N if nothing is tempered.
        beta1: decay of the momentum.
        beta2: decay of the curvature.
        damping: added to the curvature in the step only.
    """

    def __init__(
        self,
        posteriors: Sequence[WeightPosterior],
        squares: GradientSquares,
        *,
        lr: float,
        ess: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        damping: float = 0.0,
    ) -> None:
        super().__init__([q.mean for q in posteriors], {"lr": lr})
        self.posteriors, self.squares, self.ess = posteriors, squares, ess
        self.beta1, self.beta2, self.damping = beta1, beta2, damping
        self.steps = 0
        for q in posteriors:
            curvature = (q.precision - q.prior_precision) / ess
            self.state[q.mean] = {"curvature": curvature, "momentum": torch.zeros_like(q.mean)}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move means and precisions by the gradients of the last backward pass."""
        self.steps += 1
        step_size = self.param_groups[0]["lr"] / (1 - self.beta1**self.steps)
        squares = self.squares.take()
        for q in self.posteriors:
            if q.mean.grad is None:
                continue
            state = self.state[q.mean]
            delta = q.prior_precision / self.ess
            curvature = state["curvature"].lerp_(squares[q.mean], 1 - self.beta2)
            gradient = torch.addcmul(q.mean.grad, delta, q.mean - q.prior_mean)
            momentum = state["momentum"].lerp_(gradient, 1 - self.beta1)
            precision = curvature + delta
            q.mean.addcdiv_(momentum, precision + self.damping, value=-step_size)
            q.precision = precision.mul_(self.ess)
