import math
from collections import Counter

import pandas as pd
from scipy import stats

from vcl_radial.tracks.regression.published import (
    COLUMNS,
    SOURCES,
    best_log_likelihood,
    cell,
    published,
)
from vcl_radial.tracks.regression.tables import impossible_pairs


def test_every_cell_is_there_once_and_belongs_to_a_known_table():
    keys = Counter((p.source, p.set, p.column, p.metric) for p in published())
    assert set(keys.values()) == {1}
    assert {p.source for p in published()} == SOURCES.keys()
    assert {p.column for p in published()} == COLUMNS.keys()
    # Seven columns of log-likelihoods and six of RMSE, FBNN without two sets; five columns there.
    assert len(published()) == 7 * 9 - 2 + 6 * 9 - 2 + 5 * 9
    assert all(p.standard_error >= 0 for p in published())


def test_a_few_cells_as_they_are_printed():
    assert cell("farquhar2020", "power", "radial", "log_likelihood").mean == -7.54
    assert cell("farquhar2020", "yacht", "mfvi", "rmse").standard_error == 0.42
    assert cell("oh2020", "protein", "rdp", "log_likelihood").mean == 1.38
    assert cell("farquhar2020", "kin8nm", "fbnn", "log_likelihood") is None


def test_the_columns_that_both_papers_quote_agree():
    for name in ("boston", "naval", "yacht"):
        for column in ("dropout", "vmg"):
            one, other = (cell(source, name, column, "log_likelihood").mean for source in SOURCES)
            assert one == other


def test_no_gaussian_noise_does_better_than_the_bound_at_its_rmse():
    residuals = stats.norm.rvs(size=500, scale=0.3, random_state=0)
    rmse = math.sqrt((residuals**2).mean())
    bound = best_log_likelihood(rmse)
    for scale in (0.8 * rmse, rmse, 1.3 * rmse):
        assert stats.norm.logpdf(residuals, 0, scale).mean() <= bound + 1e-12
    assert math.isclose(stats.norm.logpdf(residuals, 0, rmse).mean(), bound)


def test_pairs_beyond_the_bound_are_named_and_pairs_below_it_are_not():
    methods = ("gaussian-vcl", "radial-vcl")
    run = [
        {"set": name, "method": method}
        for name in ("kin8nm", "power", "concrete")
        for method in methods
    ]
    lines = impossible_pairs(pd.DataFrame(run))
    assert any(w.startswith("kin8nm, Radial") for w in lines)
    assert any(w.startswith("kin8nm, MFVI") for w in lines)
    assert not any("power" in w or "concrete" in w for w in lines)
