"""First priors besides N(0, scale^2 I); later priors are carried posteriors."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from vcl_radial.config import outside
from vcl_radial.errors import bad_value
from vcl_radial.posteriors.base import Prior

FIRST_PRIORS = ("gaussian", "scale-mixture")
"""The first priors of the suite."""


class ScaleMixture:
    """Independent weights w ~ share N(0, scale^2) + (1 - share) N(0, narrow^2).

    Blundell et al. (2015), Eq. 7, with pi = share, sigma_1 = scale and sigma_2 = narrow; they chose
    pi from 1/4, 1/2 and 3/4, sigma_1 from exp(0, -1, -2) and sigma_2 from exp(-6, -7, -8). A
    posterior's KL to it has no closed form, and is estimated by a draw of the weights.
    """

    def __init__(self, scale: float, share: float = 0.5, narrow: float = 0.0025) -> None:
        self.components = [(share, scale), (1 - share, narrow)]

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats of w, shape [..., D], over its last axis; shape [...]."""
        one, other = (
            (math.log(share) if share else -math.inf)
            - math.log(scale)
            - math.log(2 * math.pi) / 2
            - (w / scale).square() / 2
            for share, scale in self.components
        )
        return torch.logaddexp(one, other).sum(-1, dtype=torch.float64).to(w.dtype)


def own_prior(prior: str | Callable[[float], Prior], scale: float) -> Prior:
    """A user's first prior of a layer.

    Args:
        prior: a class, or its "package.module:Class", that is called with `scale` and has
            `log_prob`, as `Prior`; if it has `kl(posterior)` too, shape [...], it takes the place
            of the estimate from a draw.
        scale: the layer's `prior_scale`.

    Raises:
        UserError: the class is not found or cannot be called, or has no `log_prob`.
    """
    made = outside.call("prior", prior, scale) if isinstance(prior, str) else prior(scale)
    if not callable(getattr(made, "log_prob", None)):
        raise bad_value("prior", prior, "has no method log_prob(w): add it")
    own: Prior = made
    return own
