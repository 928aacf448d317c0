"""The models of several seeds as one: the mean of their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self

import torch
from torch import Tensor

from vcl_radial.errors import UserError
from vcl_radial.models.model import Model


class Ensemble(Model):
    """Seeds k = 1..K of one method, with equal weights: p(y | x) = 1/K sum_k p_k(y | x).

    Its uncertainty is over all draws of all seeds, so that the mutual information includes what the
    seeds disagree on.

    Args:
        models: the models, of one method and one sequence of tasks.

    Raises:
        UserError: their inputs, tasks or classes differ.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        first = models[0]
        super().__init__(first.card, first.method)
        self.models = models
        for key in ("input", "tasks", "heads"):
            if any(model.card[key] != first.card[key] for model in models):
                raise UserError(f"the seeds differ in their {key}: load each one alone")

    @property
    def network(self) -> NoReturn:
        """Raises `UserError`: every one of `models` has a network."""
        raise UserError("an ensemble has a network for each seed: take that of one of `models`")

    @property
    def posterior(self) -> NoReturn:
        """Raises `UserError`: every one of `models` has a posterior."""
        raise UserError("an ensemble has a posterior for each seed: take that of one of `models`")

    def to(self, device: str | torch.device) -> Self:
        """Compute on another device from now on; returns this model."""
        for model in self.models:
            model.to(device)
        return self

    def draws(self, x: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Outputs `[K S, N, C]`, S draws of every seed; see `Model.draws`."""
        return torch.cat([model.draws(x, *args, **kwargs) for model in self.models])

    def _log_draws(self, x: Tensor, number: int | None) -> Tensor:
        return torch.cat([model._log_draws(x, number) for model in self.models])
