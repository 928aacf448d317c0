"""A kept model of a table: the predictive distribution of the target, from raw inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vcl_radial.errors import DataError
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.methods.tasks import check_inputs
from vcl_radial.models.arrays import check_scale, real_numbers

BATCH = 4096
"""Largest number of rows that are predicted together."""


class Prediction(NamedTuple):
    """Mean and standard deviation of the target in its own unit, `[N]`."""

    mean: Tensor
    spread: Tensor


class TableModel:
    """A method after its last task, which predicts a number from the raw inputs of a row.

    Args:
        card: what is known of the model.
        standardiser: means and scales of inputs `[d]` and of the target, in float64.
        mixture: the predictive distribution of standardised targets, `[T, n]`, from standardised
            inputs `[n, d]`.
    """

    def __init__(
        self,
        card: Mapping[str, Any],
        standardiser: Mapping[str, Tensor],
        mixture: Callable[[Tensor], Mixture],
    ) -> None:
        self.card, self._standardiser, self._mixture = card, standardiser, mixture

    @property
    def tasks(self) -> Sequence[str]:
        """The names of the tasks in order."""
        return [task["name"] for task in self.card["tasks"]]

    def inputs(self, x: Any) -> Tensor:
        """The raw inputs `[N, d]`, standardised as in training; float64.

        Raises:
            DataError: the inputs have another shape, or are not finite.
        """
        d = self.card["input"]["shape"][0]
        rows = real_numbers(x, "x").double()
        if rows.ndim != 2 or rows.shape[1] != d:
            raise DataError(f"has shape {list(rows.shape)}, not [N, {d}]", at="x")
        check_inputs(rows, "x")
        scaled = (rows - self._standardiser["x_mean"]) / self._standardiser["x_scale"]
        check_scale(scaled, "x")
        return scaled

    def targets(self, y: Any) -> Tensor:
        """The targets `[N]`, standardised as in training; float64.

        Raises:
            DataError: the targets have another shape, or are not finite.
        """
        values = real_numbers(y, "y").double()
        if values.ndim != 1 or not values.isfinite().all():
            raise DataError(f"must be finite numbers [N], not {list(values.shape)}", at="y")
        return (values - self._standardiser["y_mean"]) / self._standardiser["y_scale"]

    def predict(self, x: Any) -> Prediction:
        """Mean and standard deviation of p(y | x), which includes the noise.

            E y = 1/T sum_t m_t,   Var y = 1/T sum_t (m_t^2 + v_t) - (E y)^2

        with m_t and v_t the moments under draw t of the weights.

        Args:
            x: raw inputs `[N, d]`, in the order of the columns.

        Raises:
            DataError: the inputs have another shape, are not finite, or far too large.
        """
        inputs = self.inputs(x)
        if not len(inputs):
            return Prediction(inputs[:, 0], inputs[:, 0])
        moments = [self._mixture(part).moments() for part in torch.split(inputs, BATCH)]
        mean, spread = (torch.cat(parts) for parts in zip(*moments, strict=True))
        scale = self._standardiser["y_scale"]
        return Prediction(mean * scale + self._standardiser["y_mean"], spread * scale)

    def log_prob(self, x: Any, y: Any) -> Tensor:
        """Return log p(y | x) of targets y `[N]` in their own unit; `[N]` in nats.

        Raises:
            DataError: x or y has another shape, or is not finite.
        """
        inputs, targets = self.inputs(x), self.targets(y)
        if len(inputs) != len(targets):
            raise DataError(f"has {len(targets)} numbers, and x {len(inputs)} rows", at="y")
        if not len(inputs):
            return targets
        parts = zip(torch.split(inputs, BATCH), torch.split(targets, BATCH), strict=True)
        values = torch.cat([self._mixture(x).log_density(y) for x, y in parts])
        return values - self._standardiser["y_scale"].log()
