"""The variational families by the name that a recipe gives them, and those from outside."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from vcl_radial import outside
from vcl_radial.errors import UserError
from vcl_radial.posteriors.base import Posterior
from vcl_radial.posteriors.gaussian import Gaussian
from vcl_radial.posteriors.low_rank import LowRank
from vcl_radial.posteriors.radial import Radial
from vcl_radial.posteriors.radial_eq44 import RadialEq44
from vcl_radial.posteriors.radial_low_rank import RadialLowRank

FAMILIES: Mapping[str, type[Posterior]] = {
    "gaussian": Gaussian,
    "radial": Radial,
    "radial-eq44": RadialEq44,
    "low-rank": LowRank,
    "radial-low-rank": RadialLowRank,
}
"""The families by the name that a method's TOML gives them."""


def family(name: str | type[Posterior]) -> type[Posterior]:
    """The family that a recipe calls `posterior = "name"`.

    Args:
        name: of `FAMILIES`, "package.module:Class", or the class itself.

    Raises:
        UserError: there is none, it cannot be imported, or it is not a whole `Posterior`.
    """
    if isinstance(name, str) and name in FAMILIES:
        return FAMILIES[name]
    if isinstance(name, str) and not outside.is_named(name):
        raise UserError(
            f"posterior = {name!r} is not known: choose from {', '.join(FAMILIES)}, or name your "
            "own as 'package.module:Class'"
        )
    found = outside.find("posterior", name) if isinstance(name, str) else name
    if not (inspect.isclass(found) and issubclass(found, Posterior)):
        raise UserError(f"posterior = {name!r} is not a vcl_radial.posteriors.Posterior")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise UserError(f"posterior = {name!r} lacks {missing}")
    return found
