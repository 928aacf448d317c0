"""The largest directions of the curvature over all weights together, and a memory of them.

A memory of precision L = diag(P) + V'V, with V `[R, weights]`, adds a task's Gauss-Newton matrix H
without forming it:

    V'V + H  ~  V_new'V_new + diag(V'V + H - V_new'V_new)

V_new are the R largest directions of A = V'V + H by subspace iteration and Nystroem's method,

    Q <- orthonormal basis of A Q,   repeatedly;    A_Q = A Q (Q'A Q)^-1 Q'A

(Halko, Martinsson and Tropp 2011, sections 4.5 and 5.4), for which A - A_Q is positive
semidefinite, so that the added diagonal is not negative. The diagonal of L is therefore exactly
that of the sum of all matrices, whatever R, and L is exact where R is the rank of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from vcl_radial.curvature.fisher import Points
from vcl_radial.curvature.gauss_newton import (
    HessianRoot,
    LayerPass,
    layer_passes,
    parameter_name,
    softmax_hessian_root,
)
from vcl_radial.curvature.quadratic import Quadratic

Directions: TypeAlias = Mapping[str, Tensor]
"""m vectors over all weights, by parameter name: `[m, entries of the parameter]`."""

PASSES = 4
"""Number of products with A: three turn the subspace, and one gives A in the subspace."""

_SEED = 0


def gauss_newton_product(
    network: nn.Module,
    layers: Mapping[str, nn.Linear],
    points: Points,
    directions: Directions,
    hessian_root: HessianRoot = softmax_hessian_root,
) -> dict[str, Tensor]:
    """H D = sum_n J_n' S_n S_n' J_n D over the weights of these layers together.

    For each column of S, row nk of S'J D is sum_layers g_nk' D_layer a_n. The product with J'S adds
    g_nk a_n' times this row, so that no Jacobian is formed: 2 m multiplications per weight and
    point.

    Args:
        network: a network with outputs `[B, C]`.
        layers: linear layers of the network by their names.
        points: batches of arguments and labels, in one pass.
        directions: D, directions over the weights and biases of all these layers.
        hessian_root: S, the Hessian root of the likelihood.

    Raises:
        UserError: A layer is called more than once in a pass, or with more than one vector per
            point.
    """
    joint_directions = {name: _joint(name, layer, directions) for name, layer in layers.items()}
    total = {name: torch.zeros_like(D) for name, D in joint_directions.items()}
    for batch in points:
        passes: dict[str, LayerPass] = dict(layer_passes(network, layers, [batch], hessian_root))
        entries = sum(
            torch.einsum("kbo,bmo->kbm", g, torch.einsum("moi,bi->bmo", joint_directions[name], a))
            for name, (a, g) in passes.items()
        )
        for name, (a, g) in passes.items():
            row_gradients = torch.einsum("kbm,kbo->bmo", entries, g)
            total[name] += torch.einsum("bmo,bi->moi", row_gradients, a)
    product: dict[str, Tensor] = {}
    for name, layer in layers.items():
        weight, bias = (parameter_name(name, part) for part in ("weight", "bias"))
        product[weight] = total[name][..., : layer.in_features].flatten(1)
        if layer.bias is not None:
            product[bias] = total[name][..., -1]
    return product


def _joint(name: str, layer: nn.Linear, directions: Directions) -> Tensor:
    """Weight and bias of a layer in each direction, `[m, out, in + 1]`."""
    weight = directions[parameter_name(name, "weight")]
    weight = weight.view(len(weight), *layer.weight.shape)
    if layer.bias is None:
        return weight
    return torch.cat([weight, directions[parameter_name(name, "bias")].unsqueeze(-1)], -1)


class LowRankQuadratic(Quadratic):
    """R(w) = 1/2 sum_i P_i (w_i - c_i)^2 + 1/2 ||V (w - c)||^2 + constant.

    Weights that are not in the argument of `penalty` stay at their centres.

    Args:
        rank: R, the largest number of rows of V.

    Attributes:
        factor: V by parameter name, `[rows, entries of the parameter]`; the number of rows is the
            same for all.
    """

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank
        self.factor: dict[str, Tensor] = {}

    def penalty(self, weights: Mapping[str, Tensor], value: bool = True) -> Tensor | float:
        """R at these weights; see `Quadratic.penalty`."""
        total = super().penalty(weights, value)
        stored = [name for name in weights if name in self.factor]
        if not stored:
            return total
        offsets = ((name, (weights[name] - self.centre[name]).flatten()) for name in stored)
        along = torch.stack([self.factor[name] @ v for name, v in offsets]).sum(0)
        form = along.square().sum() / 2
        return total + (form if value else form - form.detach())

    @torch.no_grad()
    def add_curvature(
        self, product: Callable[[Directions], Directions], diagonal: Mapping[str, Tensor]
    ) -> None:
        """Add a matrix H to L; its weights must have a precision and a centre.

        Args:
            product: computes H D for directions D over the weights of H.
            diagonal: diagonal of H by the names of its weights, in the weights' shapes.
        """
        if not diagonal:
            return
        sizes = {name: F.numel() for name, F in diagonal.items()}
        sizes |= {name: V.shape[1] for name, V in self.factor.items() if name not in sizes}
        like = next(iter(diagonal.values()))
        old = self._whole_factor(sizes, like)

        def whole_product(Q: Tensor) -> Tensor:
            parts = dict(zip(sizes, torch.split(Q, [*sizes.values()], dim=1), strict=True))
            new = product({name: parts[name] for name in diagonal})
            padded = {name: torch.zeros_like(part) for name, part in parts.items()} | dict(new)
            return torch.cat([padded[name] for name in sizes], dim=1) + Q @ old.mT @ old

        new = largest_directions(whole_product, self.rank, sum(sizes.values()), like)
        lost_diagonal = old.square().sum(0) - new.square().sum(0)
        pieces = [torch.split(t, [*sizes.values()], dim=-1) for t in (lost_diagonal, new)]
        # With the memory layout of a restored state, products round in the same way.
        self.factor = {n: V.contiguous() for n, V in zip(sizes, pieces[1], strict=True)}
        for name, lost_part in zip(sizes, pieces[0], strict=True):
            P = self.precision[name]
            increase = lost_part.view_as(P) + diagonal.get(name, 0)
            self.precision[name] = P + increase.clamp(min=0)

    def _whole_factor(self, sizes: Mapping[str, int], like: Tensor) -> Tensor:
        """V over these weights in their order, `[rows, weights]`."""
        rows = len(next(iter(self.factor.values()))) if self.factor else 0
        return torch.cat(
            [self.factor.get(name, like.new_zeros(rows, size)) for name, size in sizes.items()],
            dim=1,
        )

    def state_dict(self) -> dict[str, Any]:
        """The memory as plain tensors and numbers."""
        return super().state_dict() | {"factor": dict(self.factor)}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore the memory of `state_dict`, on a device."""
        super().load_state_dict(state, device)
        self.factor = {name: V.to(device) for name, V in state["factor"].items()}


def largest_directions(
    product: Callable[[Tensor], Tensor], rank: int, size: int, like: Tensor
) -> Tensor:
    """V `[rows, size]`, at most `rank` rows, with V'V <= A and about A's largest directions.

    The subspace has twice as many directions as V.

    Args:
        product: computes Q A for rows Q `[m, size]`; A is symmetric and positive semidefinite.
        rank: largest number of rows of V.
        size: number of rows of A.
        like: a tensor with the dtype and device of A.
    """
    generator = torch.Generator().manual_seed(_SEED)
    Q = torch.randn(min(2 * rank, size), size, generator=generator).to(like)
    Y, dtype = Q, torch.promote_types(Q.dtype, torch.float32)
    for _ in range(PASSES):
        Q = torch.linalg.qr(Y.mT.to(dtype)).Q.mT.to(Y)
        Y = product(Q)
    inner, vectors = torch.linalg.eigh((Q @ Y.mT).double())
    is_kept = inner > inner[-1].clamp(min=0) * torch.finfo(Y.dtype).eps * size**0.5
    V = (vectors[:, is_kept] * inner[is_kept].rsqrt()).mT.to(Y) @ Y
    _, turn = torch.linalg.eigh((V @ V.mT).double())
    largest: Tensor = turn.mT.flip(0)[:rank].to(V) @ V
    return largest
