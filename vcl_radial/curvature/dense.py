"""A quadratic memory with a full matrix: the curvature of the loss for every pair of weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from vcl_radial.curvature.quadratic import Quadratic


class DenseQuadratic(Quadratic):
    """R(w) = 1/2 sum_i P_i (w_i - c_i)^2 + 1/2 v' M v + constant.

    v is the vector w - c of all weights; weights that are not in it stay at their centres. M is
    float64, because precisions of weights differ by many orders of magnitude: it takes 8 bytes per
    pair of weights.

    Attributes:
        sizes: number of entries of each tensor by its name, in the order of v.
        matrix: M, positive semidefinite.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {}
        self.matrix = torch.zeros(0, 0, dtype=torch.float64)
        self._root: Tensor | None = None

    def penalty(self, weights: Mapping[str, Tensor], value: bool = True) -> Tensor | float:
        """R at these weights; see `Quadratic.penalty`."""
        total = super().penalty(weights, value)
        if not isinstance(total, Tensor):
            return total
        moves = {name: w - self.centre[name] for name, w in weights.items() if name in self.sizes}
        v = flat(moves.get(name, self.centre[name].new_zeros(n)) for name, n in self.sizes.items())
        twice_form = v @ (self.matrix @ v.detach())  # with the gradient M v
        return total + (twice_form - twice_form.detach() / (2 if value else 1)).to(total)

    def add_matrix(self, names: Collection[str], matrix: Tensor) -> None:
        """Add the joint curvature of these weights, which must have a centre, in their order."""
        new = {name: self.centre[name].numel() for name in names if name not in self.sizes}
        zeros = matrix.new_zeros(len(self.matrix) + sum(new.values()))
        enlarged = zeros.diag()
        enlarged[: len(self.matrix), : len(self.matrix)] = self.matrix
        self.sizes = self.sizes | new
        indices = self._places(names)
        enlarged[indices[:, None], indices] += matrix
        self.matrix, self._root = enlarged, None

    def precision_of(self, precision: Mapping[str, Tensor]) -> Tensor:
        """The matrix diag(P) + M for weights with these P, in their order; M is 0 outside v."""
        total = flat(precision.values()).diag()
        places = torch.arange(len(total), device=total.device)
        parts = torch.split(places, [P.numel() for P in precision.values()])
        names = [name for name in precision if name in self.sizes]
        if names:
            rows = torch.cat([p for name, p in zip(precision, parts, strict=True) if name in names])
            indices = self._places(names)
            total[rows[:, None], rows] += self.matrix[indices[:, None], indices]
        return total

    def draw(self, names: Collection[str]) -> dict[str, Tensor]:
        """Draw w - c of these weights, with w ~ N(c, (diag(P) + M)^-1) over all weights."""
        if not self.sizes:
            return {}
        if self._root is None:
            precisions = {name: self.precision[name] for name in self.sizes}
            self._root = torch.linalg.cholesky(self.precision_of(precisions)).mT
        noise = torch.randn(len(self._root), 1, dtype=torch.float64, device=self._root.device)
        moves = torch.linalg.solve_triangular(self._root, noise, upper=True).squeeze(1)
        parts = dict(zip(self.sizes, torch.split(moves, [*self.sizes.values()]), strict=True))
        return {
            name: parts[name].view_as(centre).to(centre)
            for name, centre in self.centre.items()
            if name in names
        }

    def state_dict(self) -> dict[str, Any]:
        """The memory as plain tensors and numbers."""
        return super().state_dict() | {"matrix": self.matrix, "sizes": self.sizes}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore the memory of `state_dict`, on a device."""
        super().load_state_dict(state, device)
        self.matrix, self.sizes = state["matrix"].to(device), dict(state["sizes"])
        self._root = None

    def _places(self, names: Collection[str]) -> Tensor:
        """The indices of these weights in v."""
        places = torch.arange(sum(self.sizes.values()), device=self.matrix.device)
        parts = dict(zip(self.sizes, torch.split(places, [*self.sizes.values()]), strict=True))
        return torch.cat([parts[name] for name in names])


def flat(tensors: Any) -> Tensor:
    """Concatenate tensors to one vector in float64."""
    return torch.cat([tensor.flatten().double() for tensor in tensors])
