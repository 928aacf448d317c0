"""A quadratic memory of finished tasks: anchors and importances by parameter name.

    R(w) = 1/2 sum_i P_i (w_i - c_i)^2 + constant        (nats)

with P_i >= 0 the precision (importance) and c_i the centre (anchor) of weight i: the negative
logarithm of a Gaussian N(c, 1/P) up to a constant. L2, EWC, SI and MAS differ in P alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Quadratic:
    """R(w) = 1/2 sum_i P_i (w_i - c_i)^2 + constant; weights that it does not name are free.

    A sum of quadratics is one quadratic, so the penalties of any number of tasks need the memory
    and the time of one penalty.

    Attributes:
        precision: P by parameter name, of the parameter's shape, in nats per squared weight.
        centre: c by parameter name.
        constant: R at the centre, in nats.
    """

    def __init__(self) -> None:
        self.precision: dict[str, Tensor] = {}
        self.centre: dict[str, Tensor] = {}
        self.constant = 0.0

    def penalty(self, weights: Mapping[str, Tensor], value: bool = True) -> Tensor | float:
        """R at these weights, a scalar in nats; 0 if the memory has none of them.

        Args:
            weights: tensors by parameter name.
            value: whether to compute the value; otherwise the value is 0, with the gradient of R.
        """
        names = [name for name in weights if name in self.precision]
        if not names:
            return 0.0
        result: Tensor = _Penalty.apply(
            value,
            [self.precision[name] for name in names],
            [self.centre[name] for name in names],
            *(weights[name] for name in names),
        )
        return result + self.constant if value else result

    @torch.no_grad()
    def gradient(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """dR/dw_i = P_i (w_i - c_i) for the weights that the memory has."""
        return {
            name: (weight - self.centre[name]).mul_(self.precision[name])
            for name, weight in weights.items()
            if name in self.precision
        }

    @torch.no_grad()
    def replace(self, weights: Mapping[str, Tensor], importances: Mapping[str, Tensor]) -> None:
        """Replace the anchors and importances of these weights."""
        self.constant = 0.0
        for name, weight in weights.items():
            self.centre[name] = weight.detach().clone()
            self.precision[name] = importances[name].clone()

    @torch.no_grad()
    def carry(
        self,
        weights: Mapping[str, Tensor],
        importances: Mapping[str, Tensor],
        gamma: float = 1.0,
    ) -> None:
        """Move the anchor to these weights: P <- gamma max(P + F, 0), c <- w.

        The importances F may be negative; a precision may not, or R would have no minimum.
        """
        total = {
            name: (F + self.precision[name] if name in self.precision else F).clamp(min=0) * gamma
            for name, F in importances.items()
        }
        self.replace(weights, total)

    @torch.no_grad()
    def add(self, weights: Mapping[str, Tensor], importances: Mapping[str, Tensor]) -> None:
        """Add a penalty with other anchors: R <- R + 1/2 sum_i F_i (w_i - a_i)^2, F >= 0.

        The sum has precision P + F, its centre c + (a - c) F / (P + F), and its constant grows by
        1/2 sum_i P_i F_i / (P_i + F_i) (a_i - c_i)^2.
        """
        for name, weight in weights.items():
            F, anchor = importances[name], weight.detach()
            P, centre = self.precision.get(name, torch.zeros_like(F)), self.centre.get(name, anchor)
            total = P + F
            share = torch.where(total > 0, F / total, torch.ones_like(F))
            self.constant += 0.5 * (P * share * (anchor - centre).square()).sum().item()
            self.precision[name] = total
            self.centre[name] = centre + (anchor - centre) * share

    def draw(self, names: Collection[str]) -> dict[str, Tensor]:
        """Draw w - c of these weights, with w ~ N(c, 1/P)."""
        names = {name: P for name, P in self.precision.items() if name in names}
        return {name: torch.randn_like(P).mul_(P.rsqrt()) for name, P in names.items()}

    def state_dict(self) -> dict[str, Any]:
        """The memory as plain tensors and numbers."""
        return {
            "precision": dict(self.precision),
            "centre": dict(self.centre),
            "constant": self.constant,
        }

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore the memory of `state_dict`, on a device."""
        self.precision = {name: P.to(device) for name, P in state["precision"].items()}
        self.centre = {name: c.to(device) for name, c in state["centre"].items()}
        self.constant = float(state["constant"])


class _Penalty(torch.autograd.Function):
    """1/2 sum P (w - c)^2 over lists of tensors, or 0 with its gradient: two passes over w."""

    @staticmethod
    def forward(
        ctx: Any,
        value: bool,
        precision: list[Tensor],
        centre: list[Tensor],
        *weights: Tensor,
    ) -> Tensor:
        moves = torch._foreach_sub(weights, centre)
        ctx.slope = torch._foreach_mul(moves, precision)
        if not value:
            return weights[0].new_zeros(())
        terms = [m.flatten().dot(s.flatten()) for m, s in zip(moves, ctx.slope, strict=True)]
        return 0.5 * torch.stack(terms).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, *torch._foreach_mul(ctx.slope, grad)
