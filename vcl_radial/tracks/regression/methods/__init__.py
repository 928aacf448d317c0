"""Who competes: each module has a function from a `Job` to the predictive `Mixture` of its lanes.

A job holds no test targets: what a method is chosen or trained by cannot come from them.
"""

from __future__ import annotations

from collections.abc import Callable

from vcl_radial.mixture import Mixture
from vcl_radial.tracks.regression.methods import (
    badam,
    dropout,
    ensemble,
    laplace,
    linear,
    variational,
)
from vcl_radial.tracks.regression.methods.job import Job

METHODS: dict[str, Callable[[Job], Mixture]] = {
    "vcl": variational.predict,
    "rdp_vcl": variational.predict,
    "mc_dropout": dropout.predict,
    "deep_ensemble": ensemble.predict,
    "laplace_linearised": laplace.predict,
    "badam": badam.predict,
    "bayes_linear": linear.predict,
}
"""By the key `strategy` of a recipe."""

__all__ = ["METHODS", "Job"]
