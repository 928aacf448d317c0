"""Variational families and priors as tensor mathematics: draws, densities, divergences."""

from vcl_radial.posteriors.base import Family, Posterior, Prior
from vcl_radial.posteriors.families import families, family
from vcl_radial.posteriors.gaussian import Gaussian
from vcl_radial.posteriors.low_rank import LowRank, low_rank_kl
from vcl_radial.posteriors.radial import Radial
from vcl_radial.posteriors.radial_eq44 import RadialEq44
from vcl_radial.posteriors.radial_kl import radial_kl
from vcl_radial.posteriors.radial_low_rank import RadialLowRank

__all__ = [
    "Family",
    "Gaussian",
    "LowRank",
    "Posterior",
    "Prior",
    "Radial",
    "RadialEq44",
    "RadialLowRank",
    "families",
    "family",
    "low_rank_kl",
    "radial_kl",
]
