"""Online Laplace approximation of a network that is linearised at its weights.

After task t the posterior is a Gaussian around the trained weights w_t, and the next task's prior,
as in `vcl_radial.methods.laplace_diagonal`, except for the structure of its precision:

    L_t  = L_{t-1} + hessian_weight * H_t(w_t),        L_0 = I / prior_scale^2

with H_t the whole Gauss-Newton matrix, its diagonal, or the whole matrix of the last layer, the
heads, alone (Kristiadi, Hein and Hennig 2020). The Gauss-Newton matrix is the Hessian of the
network linearised in its weights, so predictions use the linearised network (Khan et al. 2019;
Immer, Korzepa and Bauer 2021, section 3); every network is linear in the weights of its last layer:

    p(y | x) = E p(y | f(x; w_t) + J(x) v),        v ~ N(0, L_t^-1)

With `evidence`, the end of the first task sets the first prior, L_0 <- alpha L_0, and the end of
every task sets the noise of a Gaussian likelihood. Both maximise the evidence of the linear model,
by MacKay's fixed-point iteration (1992) with gamma effective parameters:

    gamma = sum_i beta l_i / (alpha + beta l_i),    l_i the eigenvalues of H_t in units of L_{t-1}
    alpha = gamma / |w_t|^2,    beta = (N - gamma) / sum_n (y_n - f_n)^2
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import Positive
from vcl_radial.curvature import (
    DenseQuadratic,
    diagonal_fisher,
    gauss_newton_matrix,
    linear_layers,
)
from vcl_radial.curvature.dense import flat
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.laplace import LaplaceMethod
from vcl_radial.methods.tasks import Task
from vcl_radial.nn import parameters_in_use
from vcl_radial.nn.heads import MultiHead, SingleHead, adapt_heads
from vcl_radial.nn.linearised import linearised

LARGEST = 5_000
"""Largest number of weights with a full matrix; the matrix takes 200 MB."""

_ROUNDS = 200
_TOLERANCE = 1e-6
_LEAST = 1e-12
"""Lower bound of a squared norm or a squared error."""


class LaplaceLinearised(LaplaceMethod):
    """Carry N(w_t, L_t^-1) of the body and the trained heads forward, and predict linearly.

    Args:
        network: network of point estimates.
        prior_scale: the first prior is N(0, prior_scale^2).
        structure: structure of L_t: "full" for networks of linear layers with up to `LARGEST`
            weights, "diagonal", or "last-layer" for the heads alone, with a free body.
        evidence: whether the evidence sets the first prior and the noise; if not, the noise follows
            from the residuals of the network at w_t.
        settings: settings of `Method`, and `hessian_weight` as in `LaplaceMethod`.

    Raises:
        UserError: an option is out of its range, or the network does not have this structure.
    """

    carries = "one anchor and a precision: a whole matrix, a diagonal, or the matrix of the heads"
    recipe_keys = frozenset({"eval_samples", "prior_scale"})
    fixed_options = frozenset({"prior_precision"})

    def __init__(
        self,
        network: nn.Module,
        *,
        prior_scale: Positive = 1.0,
        structure: Literal["full", "diagonal", "last-layer"] = "full",
        evidence: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(network, prior_precision=prior_scale**-2, **settings)
        self.evidence = evidence
        self._layers: tuple[str, ...] = ("",)
        if structure == "last-layer":
            self._layers = tuple(
                f"{name}."
                for name, module in network.named_modules()
                if isinstance(module, MultiHead | SingleHead)
            )
            if not self._layers:
                raise UserError("options.structure = 'last-layer' needs a MultiHead or SingleHead")
            # Heads are independent, unless the evidence sets one prior for all.
            self.memoryless = self.with_task and not evidence  # type: ignore[misc]
        if structure != "diagonal":
            self.past = DenseQuadratic()
            linear_layers(network, self._parameters_in_use([]))
            self._check_size()

    def begin_task(self, task: Task) -> None:
        """Check that the matrix can hold the heads of the task, and that all layers are linear."""
        super().begin_task(task)
        if isinstance(self.past, DenseQuadratic):
            linear_layers(self.network, self.parameters_in_use())
            self._check_size()

    def _check_size(self) -> None:
        multi_heads = (m for m in self.network.modules() if isinstance(m, MultiHead))
        weights = self._parameters_in_use({int(task) for m in multi_heads for task in m.heads})
        if (count := sum(weight.numel() for weight in weights.values())) > LARGEST:
            raise UserError(
                f"options.structure needs a matrix of {count:,} x {count:,} numbers: take "
                f"'diagonal', or a network of at most {LARGEST:,} weights"
            )

    def state_dict(self) -> dict[str, Any]:
        """The state of every Laplace method, and the first prior, which the evidence may set."""
        return super().state_dict() | {"prior_precision": self.prior_precision}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.prior_precision = state["prior_precision"]

    def parameters_in_use(self) -> dict[str, nn.Parameter]:
        """The parameters with a posterior: the body and the task's heads, or the heads alone."""
        return self._parameters_in_use(self.heads)

    def _parameters_in_use(self, tasks: Collection[int]) -> dict[str, nn.Parameter]:
        weights = parameters_in_use(self.network, tasks).items()
        return {name: weight for name, weight in weights if name.startswith(self._layers)}

    def output(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """The network's outputs `[B, C]`; in evaluation linearised, for one draw of the weights.

        Weights that no task has trained are drawn around their values, with the scale of the first
        prior.
        """
        if self.network.training:
            return super().output(x, task)
        labels = torch.unique(torch.as_tensor(task)).tolist() if self.with_task else []
        adapt_heads(self.network, labels)  # no head can be made within the derivative
        weights = self._parameters_in_use(labels)
        moves = {n: torch.randn_like(w) * self.prior_precision**-0.5 for n, w in weights.items()}
        moves |= self.past.draw(weights)
        return linearised(self.network, moves, x, *([task] if self.with_task else []))

    def posterior_outputs(self, x: Tensor, task: int | Tensor = 0, **draw_options: Any) -> Tensor:
        """The outputs at the weights, `[1, B, C]`: `end_task` has not made the posterior yet."""
        with torch.no_grad():
            return super().output(x, task).unsqueeze(0)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        """Move the mode, and add the curvature of the body and of the trained heads."""
        past, weights = self.past, self.trained_parameters()
        start = torch.tensor(self.prior_precision, device=self.device)
        is_first = not past.precision
        prior = {
            name: past.precision.get(name, start.to(w).expand_as(w)) for name, w in weights.items()
        }
        moved = flat(w - past.centre.get(name, 0.0) for name, w in weights.items())
        if isinstance(past, DenseQuadratic):
            curvature = self.hessian_weight * gauss_newton_matrix(
                self.network, weights, self.points(), self.likelihood.hessian_root
            )
            alpha, beta = self._factors(curvature, past.precision_of(prior), moved, is_first)
            past.replace(weights, {name: alpha * P for name, P in prior.items()})
            past.add_matrix(weights, beta * curvature)
        else:
            diagonal = diagonal_fisher(
                self.network, weights, self.points(), "predictive", self.likelihood
            )
            curvature = self.hessian_weight * flat(diagonal.values())
            alpha, beta = self._factors(curvature, flat(prior.values()), moved, is_first)
            added = {name: beta * self.hessian_weight * H for name, H in diagonal.items()}
            past.replace(weights, {name: alpha * P + added[name] for name, P in prior.items()})
        # Later heads start with this prior too.
        self.prior_precision *= alpha

    def _factors(
        self, curvature: Tensor, prior: Tensor, moved: Tensor, is_first: bool
    ) -> tuple[float, float]:
        """The factors alpha of the prior and beta of the curvature; sets the noise by beta.

        Args:
            curvature: H_t at the current noise, `[P, P]` or its diagonal `[P]`.
            prior: L_{t-1}, of the same shape.
            moved: w_t - w_{t-1}, `[P]`.
            is_first: whether the prior is the first one, which the evidence sets.
        """
        if not self.evidence:
            return 1.0, 1.0
        if curvature.dim() == 1:
            eigenvalues, squared_norm = curvature / prior, (prior * moved.square()).sum()
        else:
            root = torch.linalg.cholesky(prior)
            half = torch.linalg.solve_triangular(root, curvature, upper=False)
            relative = torch.linalg.solve_triangular(root, half.mT, upper=False)
            eigenvalues = torch.linalg.eigvalsh(relative).clamp(min=0)
            squared_norm = moved @ (prior @ moved)
        noise = self.likelihood.noise if isinstance(self.likelihood, Gaussian) else None
        # The noise follows from the residuals of the network at w_t: 2 shape and 2 rate are N and
        # the sum of squares, including the prior's part, and beta is in units of their ratio.
        points = None if noise is None else 2 * float(noise.shape)
        alpha, beta = maximise_evidence(
            eigenvalues, points, float(squared_norm) if is_first else None, points
        )
        if noise is not None:
            noise.rate = noise.rate / beta
        return alpha, beta


def maximise_evidence(
    eigenvalues: Tensor,
    points: float | None,
    squared_norm: float | None,
    squared_error: float | None,
) -> tuple[float, float]:
    """The alpha and beta of the fixed point; see the module's docstring.

    Args:
        eigenvalues: l, `[P]`, at least 0.
        points: N, the number of points.
        squared_norm: |w_t|^2; None where alpha is 1.
        squared_error: sum_n (y_n - f_n)^2; None where beta is 1.
    """
    # Weights of 0, or a perfect fit, would give an infinite precision.
    squared_norm = None if squared_norm is None else max(squared_norm, _LEAST)
    squared_error = None if squared_error is None else max(squared_error, _LEAST)
    alpha = 1.0 if squared_norm is None else len(eigenvalues) / squared_norm
    beta = 1.0 if squared_error is None or points is None else points / squared_error
    for _ in range(_ROUNDS):
        gamma = float((beta * eigenvalues / (alpha + beta * eigenvalues)).sum())
        if gamma <= 0:  # the data have no information about any weight
            break
        previous = alpha, beta
        if squared_norm is not None:
            alpha = gamma / squared_norm
        if squared_error is not None and points is not None:
            beta = (points - gamma) / squared_error
        if max(abs(alpha / previous[0] - 1), abs(beta / previous[1] - 1)) < _TOLERANCE:
            break
    return alpha, beta
