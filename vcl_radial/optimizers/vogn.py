"""Variational online Gauss-Newton, with a Gaussian prior of any mean and precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from vcl_radial.errors import UserError
from vcl_radial.nn import WeightPosterior
from vcl_radial.optimizers.natural_gradient import NaturalGradient


class GradientSquares:
    """Mean squares of the gradients of single rows, for all linear layers of a network.

        h = 1/R sum_i g_i^2,    g_i the gradient of the loss of row i

    Hooks collect h in the backward pass of a loss that is a mean over R rows. For y = W x, with d_i
    the gradient in y of the loss of row i, the square of W's gradient is d_i^2 (x_i^2)'. The rows
    of several passes (draws of the weights) count together. A pass may use each layer only once.

    Args:
        network: the module to watch, until `close` is called.

    Raises:
        UserError: a parameter belongs to something other than `torch.nn.Linear`.
    """

    def __init__(self, network: nn.Module) -> None:
        self._sums: dict[Tensor, Tensor] = {}
        self._rows: dict[Tensor, int] = {}
        self._hooks = [self._watch(layer) for layer in linear_layers(network)]

    def _watch(self, layer: nn.Linear) -> Any:
        # Read the parameters now: while a pass draws the weights, the layer holds the draw instead.
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
        total = self._sums.get(parameter)
        self._sums[parameter] = squares if total is None else total.add_(squares)
        self._rows[parameter] = self._rows.get(parameter, 0) + rows

    def take(self) -> dict[Tensor, Tensor]:
        """The mean squares since the last call, by parameter."""
        # The loss is a mean over R rows, so a row's gradient is R times the collected one.
        averages = {p: total.mul_(self._rows[p]) for p, total in self._sums.items()}
        self._sums, self._rows = {}, {}
        return averages

    def close(self) -> None:
        """Remove the hooks from the network."""
        for hook in self._hooks:
            hook.remove()


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    """The layers of a network that have parameters.

    Raises:
        UserError: A layer is not linear.
    """
    layers = []
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            layers.append(layer)
        elif list(layer.parameters(recurse=False)):
            raise UserError(
                f"VOGN knows the gradients of single rows in linear layers only, and the "
                f"network has a {type(layer).__name__}: take a network of linear layers alone"
            )
    return layers


class VOGN(NaturalGradient):
    """Natural-gradient variational inference with the squares of single rows' gradients.

    It is `NaturalGradient` with the mean squared gradient of single rows as the curvature:

        h = 1/B sum_i g_i^2,    metric = s + delta + damping

    The fixed point is stationary for E_q[mean NLL] + KL(q || p) / ess with the Hessian of the NLL
    replaced by the sum of squared row gradients.

    Source: Khan et al. 2018 (VOGN); momentum and damping as in Osawa et al. 2019. The momentum has
    Adam's correction for its start at 0.

    Args:
        posteriors: posteriors of the parameters to train.
        squares: collects h.
        damping: addend of the curvature, in the step only.
        settings: settings of `NaturalGradient`; an `lr` of 1 is a whole natural-gradient step.
    """

    def __init__(
        self,
        posteriors: Sequence[WeightPosterior],
        squares: GradientSquares,
        *,
        damping: float = 0.0,
        **settings: float,
    ) -> None:
        super().__init__(posteriors, **settings)
        self.gradient_squares, self.damping = squares, damping

    def squares(self) -> Mapping[Tensor, Tensor]:
        """The mean squared gradients of the rows of the passes since the last step."""
        return self.gradient_squares.take()

    def metric(self, curvature: Tensor, delta: Tensor) -> Tensor:
        """The curvature plus the prior and the damping, s + delta + damping."""
        return curvature + delta + self.damping
