"""What a method serves: likelihoods of outputs, and posteriors of weights."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from vcl_radial.config import outside
from vcl_radial.errors import UserError

if TYPE_CHECKING:
    from torch import nn

    from vcl_radial.likelihoods import Likelihood
    from vcl_radial.methods.base import Method

POINTS = "none"
"""The posterior of a network of point estimates."""

ANY = "any"
"""What stands for every variational family."""


def check_posterior(who: str, posteriors: Collection[str], posterior: str) -> None:
    """See that a method is for the posterior that a recipe names; nothing is imported.

    Args:
        who: the method, as it is named in what is said.
        posteriors: `Method.posteriors`.
        posterior: of the recipe, or `package.module:Class` of a user's own.

    Raises:
        UserError: it is not.
    """
    is_family = posterior != POINTS
    by_the_user = outside.is_named(posterior) and {*posteriors} != {POINTS}
    served = posterior in posteriors or by_the_user or (is_family and ANY in posteriors)
    if posteriors and not served:
        raise not_for(who, posteriors)


def check_network(method: Method, network: nn.Module, likelihood: Likelihood) -> None:
    """See that a method serves a likelihood, and has the point estimates or the posterior it wants.

    Raises:
        UserError: it does not, or has not.
    """
    from vcl_radial.nn.weights import VariationalWeights

    name = type(method).__name__
    if likelihood.name not in method.likelihoods:
        raise UserError(
            f"{name} does not serve a {likelihood.name} likelihood: it serves "
            f"{' and '.join(sorted(method.likelihoods))}"
        )
    has_posterior = any(isinstance(module, VariationalWeights) for module in network.modules())
    wrong = {*method.posteriors} == {POINTS} if has_posterior else POINTS not in method.posteriors
    if method.posteriors and wrong:
        raise not_for(name, method.posteriors)


def not_for(who: str, posteriors: Collection[str]) -> UserError:
    """That a method is for other posteriors, in words."""
    if ANY in posteriors:
        from vcl_radial.posteriors.families import all_families

        posteriors = {*posteriors, *all_families()} - {ANY}
    *others, last = map(repr, sorted(posteriors))
    if not others:
        return UserError(f"{who} is for posterior = {last}: set that")
    return UserError(f"{who} is for posterior = {', '.join(others)} or {last}: set one of them")
