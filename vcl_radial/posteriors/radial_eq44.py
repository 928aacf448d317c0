"""The radial family with the uncorrected prior term of the paper, for reproduction only."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.posteriors.base import Posterior
from vcl_radial.posteriors.gaussian import Gaussian
from vcl_radial.posteriors.radial import Radial, quadratic_gradients


class RadialEq44(Radial):
    """Radial family whose `kl` to a radial prior is Eq. 44 of Farquhar et al. 2020, as printed.

    -sum log s + (||a||^2 + mean(s^2) - 1) / 2
    a = (mean - mean_p) / scale_p,   s = scale / scale_p

    The paper averages ||z_p||^2 over draws; its expectation is known exactly, so no draw is needed.
    The Jacobian term (D - 1) log ||z_p|| is left out, as a note in the paper says. So for D > 1
    this is *not a divergence*: it is 0 at q = p but not minimal there, falls below 0, and lets the
    scales grow until s = sqrt(D). Use it to reproduce published figures, and `Radial` for
    everything else. Density, draws and all other divergences are the same as in `Radial`.
    """

    name = "radial-eq44"

    @classmethod
    def kl_gradients(
        cls, prior: type[Posterior], pairs: Sequence[tuple[Tensor, Tensor]]
    ) -> list[tuple[Tensor, Tensor]] | None:
        """The gradients of a Gaussian prior: Eq. 44 differs from it by a constant only."""
        return quadratic_gradients(pairs) if issubclass(prior, Radial | Gaussian) else None

    def _kl_to_radial(self, prior: Radial) -> Tensor:
        a, s = self._in_units_of(prior)
        squares = a.square().sum(-1, dtype=torch.float64) + s.square().mean(-1, dtype=torch.float64)
        return ((squares - 1) / 2 - s.log().sum(-1, dtype=torch.float64)).to(a.dtype)
