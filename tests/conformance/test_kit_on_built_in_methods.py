"""Every method of the suite is held to what is asked of a user's."""

import inspect

import pytest

from vcl_radial.conformance import check, recipe_for
from vcl_radial.methods.registry import built_in
from vcl_radial.runs import catalogue
from vcl_radial.strategies.registry import find_strategy

KNOWN = {
    # Its divergence lacks the Jacobian term, so it is not minimal where posterior and prior agree.
    "radial-vcl-eq44": {"consolidates"},
}


AT_MOST = {"coreset_epochs": 2}
"""Sizes that some methods have of their own."""


SLOW = (
    *("sfsvi", "ivon", "vogn", "vadam", "radial-vcl-", "vcl-coreset", "vcl-ml", "ewc-separate"),
    *("laplace-kronecker", "l2", "mas", "naive-sgd", "gvcl", "joint", "frozen-body", "single-task"),
    *("rdp-vcl",),
)
"""Methods whose checks, of a second or more, `make test-all` runs; by how their names begin."""


def marked(name):
    """The name, for `make test-all` alone where its checks take long."""
    return pytest.param(name, marks=pytest.mark.slow) if name.startswith(SLOW) else name


def quick(name):
    recipe = recipe_for(name)
    own = inspect.signature(find_strategy(recipe.strategy)).parameters
    sizes = {key: recipe.options.get(key, own[key].default) for key in AT_MOST if key in own}
    return recipe_for(name, {f"options.{k}": min(v, AT_MOST[k]) for k, v in sizes.items()})


@pytest.mark.parametrize("name", [marked(name) for name in catalogue.names("method")])
def test_a_shipped_method_passes_every_check(name):
    verdicts = list(check(quick(name)))
    faults = {verdict.name for verdict in verdicts if verdict.outcome == "fault"}
    assert faults == KNOWN.get(name, set()), "\n".join(map(str, verdicts))


def test_every_built_in_strategy_has_a_recipe_and_is_checked_by_it():
    assert set(built_in()) == {recipe_for(name).strategy for name in catalogue.names("method")}
