"""Check the likelihoods of outputs and the posteriors of weights that a method supports."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from vcl_radial.config import outside
from vcl_radial.errors import UserError

if TYPE_CHECKING:
    from torch import nn

    from vcl_radial.likelihoods import Likelihood
    from vcl_radial.methods.traits import MethodTraits

POINTS = "none"
"""The posterior of a network of point estimates."""

ANY = "any"
"""The entry of `posteriors` that means every variational family."""


def check_posterior(method: str, posteriors: Collection[str], posterior: str) -> None:
    """Check that a method supports the posterior that a recipe names; nothing is imported.

    Args:
        method: name of the method, for the message.
        posteriors: `Method.posteriors`.
        posterior: name in the recipe, or `package.module:Class` of a user's own family.

    Raises:
        UserError: the method does not support it.
    """
    is_family = posterior != POINTS
    by_the_user = outside.is_named(posterior) and {*posteriors} != {POINTS}
    supported = posterior in posteriors or by_the_user or (is_family and ANY in posteriors)
    if posteriors and not supported:
        raise wrong_posterior(method, posteriors)


def check_network(method: MethodTraits, network: nn.Module, likelihood: Likelihood) -> None:
    """Check that a method supports a likelihood, and the posterior or point estimates of a network.

    Raises:
        UserError: the method does not support one of them.
    """
    from vcl_radial.nn.weights import VariationalWeights

    name = type(method).__name__
    if likelihood.name not in method.likelihoods:
        raise UserError(
            f"{name} does not serve a {likelihood.name} likelihood: it serves "
            f"{' and '.join(sorted(method.likelihoods))}"
        )
    has_posterior = any(isinstance(module, VariationalWeights) for module in network.modules())
    unsupported = (
        {*method.posteriors} == {POINTS} if has_posterior else POINTS not in method.posteriors
    )
    if method.posteriors and unsupported:
        raise wrong_posterior(name, method.posteriors)


def wrong_posterior(method: str, posteriors: Collection[str]) -> UserError:
    """The error for a method that supports only other posteriors."""
    if ANY in posteriors:
        from vcl_radial.posteriors.families import all_families

        posteriors = {*posteriors, *all_families()} - {ANY}
    *names, name = map(repr, sorted(posteriors))
    if not names:
        return UserError(f"{method} is for posterior = {name}: set that")
    return UserError(f"{method} is for posterior = {', '.join(names)} or {name}: set one of them")
