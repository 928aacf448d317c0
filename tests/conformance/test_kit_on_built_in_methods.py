"""Every method of the suite is held to what is asked of a user's."""

import pytest
from scenarios import quick_recipe

from vcl_radial.conformance import STREAMS, iter_verdicts, recipe_for
from vcl_radial.methods.registry import built_in
from vcl_radial.runs import catalogue

KNOWN = {
    # Its divergence lacks the Jacobian term, so it is not minimal where posterior and prior agree.
    "radial-vcl-eq44": {"consolidates"},
}


BARE = {"gaussian-vcl", "lwf", "naive"}
"""Methods whose checks take two seconds or so; `make test-all` runs those of the others."""

NOT_SERVED = {
    "bayes-discriminant": {"numbers"},
    "ewc-dr": {"numbers"},
    "bayes-linear-patches": {"numbers"},
    "lwf": {"numbers"},
    "ranpac": {"numbers"},
    "sfsvi": {"convolutions"},
    "slda": {"numbers"},
    "vogn": {"batch norms", "convolutions"},
}
"""The streams that a method refuses in one line; it must serve all others."""


def marked(name):
    """The name, for `make test-all` alone where its checks take long."""
    return name if name in BARE else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [marked(name) for name in catalogue.names("method")])
def test_a_shipped_method_passes_every_check(name):
    verdicts = list(iter_verdicts(quick_recipe(name)))
    faults = {verdict.name for verdict in verdicts if verdict.outcome == "fault"}
    assert faults == KNOWN.get(name, set()), "\n".join(map(str, verdicts))
    refused = {stream.name for stream in STREAMS if f"not {stream.name}: " in verdicts[-1].message}
    assert refused == NOT_SERVED.get(name, set())


def test_every_built_in_strategy_has_a_recipe_and_is_checked_by_it():
    assert set(built_in()) == {recipe_for(name).strategy for name in catalogue.names("method")}
