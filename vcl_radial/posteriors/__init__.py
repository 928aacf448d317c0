"""Variational families and priors as tensor mathematics: draws, densities, divergences."""

from collections.abc import Mapping

from vcl_radial.posteriors.base import Posterior, Prior
from vcl_radial.posteriors.gaussian import Gaussian
from vcl_radial.posteriors.radial import Radial
from vcl_radial.posteriors.radial_eq44 import RadialEq44
from vcl_radial.posteriors.radial_kl import radial_kl
from vcl_radial.posteriors.scale_mixture import ScaleMixture

FAMILIES: Mapping[str, type[Posterior]] = {
    "gaussian": Gaussian,
    "radial": Radial,
    "radial-eq44": RadialEq44,
}
"""The families by the name that a method's TOML gives them."""

__all__ = [
    "FAMILIES",
    "Gaussian",
    "Posterior",
    "Prior",
    "Radial",
    "RadialEq44",
    "ScaleMixture",
    "radial_kl",
]
