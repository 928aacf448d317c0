"""A quadratic memory with a whole matrix: how every two weights curve the loss together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from vcl_radial.curvature.quadratic import Quadratic


class DenseQuadratic(Quadratic):
    """R(w) = 1/2 sum_i P_i (w_i - c_i)^2 + 1/2 v' M v + constant.

    v holds w - c of all weights in turn; a weight that is left out rests at its centre. M is
    float64, for precisions of weights differ by many orders: its memory is 8 bytes for every two
    weights.

    Attributes:
        sizes: how many numbers each tensor has, by its name and in the order of v.
        matrix: M, positive semidefinite.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {}
        self.matrix = torch.zeros(0, 0, dtype=torch.float64)
        self._root: Tensor | None = None

    def penalty(self, weights: Mapping[str, Tensor], value: bool = True) -> Tensor | float:
        """As `Quadratic.penalty`."""
        total = super().penalty(weights, value)
        if not isinstance(total, Tensor):
            return total
        moved = {name: w - self.centre[name] for name, w in weights.items() if name in self.sizes}
        v = flat(moved.get(name, self.centre[name].new_zeros(n)) for name, n in self.sizes.items())
        twice = v @ (self.matrix @ v.detach())  # with the gradient M v
        return total + (twice - twice.detach() / (2 if value else 1)).to(total)

    def add_matrix(self, names: Collection[str], matrix: Tensor) -> None:
        """Add to M what these weights, in their order, curve together; they have a centre."""
        new = {name: self.centre[name].numel() for name in names if name not in self.sizes}
        whole = matrix.new_zeros(len(self.matrix) + sum(new.values()))
        grown = whole.diag()
        grown[: len(self.matrix), : len(self.matrix)] = self.matrix
        self.sizes = self.sizes | new
        at = self._places(names)
        grown[at[:, None], at] += matrix
        self.matrix, self._root = grown, None

    def precision_of(self, precision: Mapping[str, Tensor]) -> Tensor:
        """diag(P) + M of weights with these P, in their order; M is 0 where it has none of them."""
        whole = flat(precision.values()).diag()
        places = torch.arange(len(whole), device=whole.device)
        parts = torch.split(places, [P.numel() for P in precision.values()])
        known = [name for name in precision if name in self.sizes]
        if known:
            to = torch.cat([p for name, p in zip(precision, parts, strict=True) if name in known])
            at = self._places(known)
            whole[to[:, None], to] += self.matrix[at[:, None], at]
        return whole

    def draw(self, names: Collection[str]) -> dict[str, Tensor]:
        """A draw of w - c of these weights, w ~ N(c, (diag(P) + M)^-1) over all of them."""
        if not self.sizes:
            return {}
        if self._root is None:
            everything = {name: self.precision[name] for name in self.sizes}
            self._root = torch.linalg.cholesky(self.precision_of(everything)).mT
        noise = torch.randn(len(self._root), 1, dtype=torch.float64, device=self._root.device)
        moved = torch.linalg.solve_triangular(self._root, noise, upper=True).squeeze(1)
        parts = dict(zip(self.sizes, torch.split(moved, [*self.sizes.values()]), strict=True))
        return {
            name: parts[name].view_as(centre).to(centre)
            for name, centre in self.centre.items()
            if name in names
        }

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers."""
        return super().state_dict() | {"matrix": self.matrix, "sizes": self.sizes}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device | str = "cpu") -> None:
        """Take over what `state_dict` gave, on a device."""
        super().load_state_dict(state, device)
        self.matrix, self.sizes = state["matrix"].to(device), dict(state["sizes"])
        self._root = None

    def _places(self, names: Collection[str]) -> Tensor:
        """Of these weights in v."""
        places = torch.arange(sum(self.sizes.values()), device=self.matrix.device)
        parts = dict(zip(self.sizes, torch.split(places, [*self.sizes.values()]), strict=True))
        return torch.cat([parts[name] for name in names])


def flat(tensors: Any) -> Tensor:
    """Tensors one after the other as one vector in float64."""
    return torch.cat([tensor.flatten().double() for tensor in tensors])
