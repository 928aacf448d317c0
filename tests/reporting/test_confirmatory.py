"""The tests that the plan of the confirmatory experiment states, before there is a result."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

SOURCE = Path(__file__).parents[2] / "reports" / "confirmatory" / "confirm.py"


@pytest.fixture(scope="module")
def confirm():
    spec = importlib.util.spec_from_file_location("confirm", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_power_is_the_share_of_experiments_that_find_the_difference(confirm):
    draws = np.random.default_rng(0).normal(0.9, 1, size=(20_000, 12))
    share = (stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.01).mean()
    assert confirm.power(0.9, 12, 0.01) == pytest.approx(share, abs=0.01)


def test_what_is_detectable_and_the_seeds_for_it_belong_together(confirm):
    assert confirm.seeds_for(confirm.detectable(16, 0.01), 0.01) == 16
    assert confirm.detectable(20, 0.01) < confirm.detectable(16, 0.01)
    assert confirm.detectable(16, 0.01) > confirm.detectable(16, 0.05)


def runs_of(confirm, **values):
    """`runs.csv` of all methods, of which some are not at 90 + seed / 100 per cent."""
    methods = {name for pair in confirm.COMPARISONS for name in pair}
    rows = [
        (f"best-{method}", seed, values.get(method, lambda s: 90 + s / 100)(seed))
        for method in sorted(methods)
        for seed in confirm.PRIMARY.seeds
    ]
    table = pd.DataFrame(rows, columns=["method", "seed", "average_accuracy"])
    return dict.fromkeys(confirm.PRIMARY.chance, table[table["average_accuracy"].notna()])


def test_methods_that_do_not_differ_are_not_told_apart(confirm):
    table = confirm.table(runs_of(confirm))
    assert len(table) == 12
    assert set(table["p"]) == set(table["holm"]) == {1.0}


def test_a_run_that_diverged_has_the_accuracy_of_a_guess(confirm):
    first, *_ = confirm.PRIMARY.seeds
    values = {"gaussian-vcl": lambda seed: np.nan if seed == first else 90 + seed / 100}
    table = confirm.table(runs_of(confirm, **values)).set_index(["stream", "first", "second"])
    for stream, chance in confirm.PRIMARY.chance.items():
        expected = (90 + first / 100 - chance) / len(confirm.PRIMARY.seeds)
        of = table.loc[(stream, "radial-vcl", "gaussian-vcl")]
        assert of["difference"] == pytest.approx(expected)
        assert of["lower"] < 0 < of["upper"]


def test_the_seeds_are_those_of_the_plan(confirm):
    plan = SOURCE.with_name("plan.md").read_text()
    for family in confirm.FAMILIES.values():
        assert f"--seeds {family.seeds[0]}-{family.seeds[-1]} " in plan


def test_no_seed_is_left_out_and_none_is_added(confirm):
    runs = runs_of(confirm)
    stream = "permuted-mnist"
    runs[stream] = pd.concat([runs[stream], runs[stream].assign(seed=lambda t: t["seed"] + 100)])
    with pytest.raises(SystemExit, match="radial-vcl"):
        confirm.table(runs)


@pytest.mark.parametrize("path", sorted(SOURCE.parent.glob("*.csv")), ids=lambda path: path.stem)
def test_the_committed_tests_are_those_of_the_committed_runs(confirm, path):
    family = confirm.FAMILIES[confirm.PLAN["blocks"][path.stem]["family"]]
    made = confirm.table(confirm.read(path.with_suffix(""), family), family)
    pd.testing.assert_frame_equal(pd.read_csv(path), made, rtol=1e-9)
