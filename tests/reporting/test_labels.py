"""How runs of one name are told apart in a report."""

import pytest

from vcl_radial.reporting.labels import CLASS_KEYS, LabelParts, flat, labels, shipped_classes
from vcl_radial.runs.catalogue import load, names

GAUSSIAN = {"strategy": "vcl", "posterior": "gaussian", "epochs": 60}


def of(*tables, name="m", codes=(), default=None):
    """Labels of runs of one method."""
    codes = codes or [None] * len(tables)
    runs = [
        LabelParts("group", name, table, code, default or {})
        for table, code in zip(tables, codes, strict=True)
    ]
    return labels(runs, "code")


def gaussian(**changed):
    return GAUSSIAN | changed


def of_gaussian(*tables, codes=()):
    shipped = {"strategy": "vcl", "posterior": "gaussian"}
    return of(*tables, name="gaussian-vcl", codes=codes, default=shipped)


def test_a_shipped_method_as_it_is_has_its_name():
    assert of_gaussian(gaussian(), gaussian()) == ["gaussian-vcl"] * 2


def test_a_shipped_method_with_another_posterior_is_never_shown_under_its_bare_name():
    laplace = gaussian(posterior="my_posteriors:Laplace")
    label = "gaussian-vcl (posterior: Laplace)"
    assert of_gaussian(laplace, codes=["f00"]) == [label]
    assert of_gaussian(laplace, gaussian(), codes=["f00", None]) == [label, "gaussian-vcl"]
    assert of_gaussian(gaussian(posterior="radial")) == ["gaussian-vcl (posterior: radial)"]


def test_a_key_that_a_run_does_not_set_is_not_shown():
    assert of({"epochs": 1}, {"epochs": 1, "noise": 0.1}) == ["m", "m (noise=0.1)"]
    assert of({"noise": None}, {"noise": 0.1}) == ["m", "m (noise=0.1)"]


def test_all_that_differs_is_named():
    laplace = gaussian(posterior="my:Laplace", epochs=5)
    assert of_gaussian(gaussian(), laplace) == [
        "gaussian-vcl (epochs=60)",
        "gaussian-vcl (posterior: Laplace, epochs=5)",
    ]


def test_two_classes_of_one_name_are_named_with_their_modules():
    tables = [{"posterior": "one:Laplace"}, {"posterior": "two:Laplace"}]
    assert of(*tables) == ["m (posterior: one:Laplace)", "m (posterior: two:Laplace)"]


def test_code_is_named_only_where_nothing_else_differs():
    mine, another = {"strategy": "my:L2"}, {"strategy": "my:L2", "epochs": 9}
    assert of(mine, mine, codes=["abcdef01", "12345678"]) == ["m (code abcdef)", "m (code 123456)"]
    assert of(mine, mine, codes=["abcdef01", "abcdef01"]) == ["m", "m"]
    assert of(mine, another, codes=["abcdef01", "12345678"]) == ["m", "m (epochs=9)"]
    assert of(mine, mine, codes=["abcdef01", None]) == ["m (code abcdef)", "m"]


def test_runs_of_another_group_are_not_looked_at():
    runs = [LabelParts(group, "m", {"epochs": n}) for n, group in enumerate("ab")]
    assert labels(runs, "code") == ["m", "m"]


def test_options_are_named_as_they_are_set():
    assert flat({"epochs": 1, "options": {"a": 1, "b": {}}}) == {"epochs": 1, "options.a": 1}
    tables = [flat({"options": {"strength": s}}) for s in (1, 2)]
    assert of(*tables) == ["m (options.strength=1)", "m (options.strength=2)"]


@pytest.mark.parametrize("method", names("method"))
def test_every_shipped_method_stands_for_its_strategy_and_posterior(method):
    recipe = load("method", method).recipe
    assert shipped_classes(method) == {k: recipe[k] for k in CLASS_KEYS if k in recipe}


def test_a_name_of_the_users_own_stands_for_nothing():
    assert shipped_classes("my-laplace") == {}
