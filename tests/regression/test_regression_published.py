import math

import pandas as pd
from scipy import stats

from vcl_radial.tracks.regression.published import (
    COLUMNS,
    PUBLISHED,
    SOURCES,
    best_log_likelihood,
    impossible_pairs,
    theirs,
)


def printed(source, name, column, metric="log_likelihood"):
    return theirs(source, column, metric).by_row.get(name)


def test_every_cell_belongs_to_a_known_table():
    assert {source for source, *_ in PUBLISHED} == SOURCES.keys()
    assert {column for *_, column, _ in PUBLISHED} == COLUMNS.keys()
    # Seven columns of log-likelihoods and six of RMSE, FBNN without two sets; five columns there.
    assert len(PUBLISHED) == 7 * 9 - 2 + 6 * 9 - 2 + 5 * 9
    assert all(value.spread >= 0 for value in PUBLISHED.values())


def test_a_few_cells_as_they_are_printed():
    assert printed("farquhar2020", "power", "radial").mean == -7.54
    assert printed("farquhar2020", "yacht", "mfvi", "rmse").spread == 0.42
    assert printed("oh2020", "protein", "rdp").mean == 1.38
    assert printed("farquhar2020", "kin8nm", "fbnn") is None


def test_the_columns_that_both_papers_quote_agree():
    for name in ("boston", "naval", "yacht"):
        for column in ("dropout", "vmg"):
            one, other = (printed(source, name, column).mean for source in SOURCES)
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
    rows = [
        (name, method, 0, "log_likelihood", 0.0, 0.1, 2)
        for name in ("kin8nm", "power", "concrete")
        for method in methods
    ]
    columns = ["part", "method", "after", "metric", "mean", "standard_error", "seeds"]
    lines = impossible_pairs(pd.DataFrame(rows, columns=columns))
    assert any(w.startswith("kin8nm, Radial") for w in lines)
    assert any(w.startswith("kin8nm, MFVI") for w in lines)
    assert not any("power" in w or "concrete" in w for w in lines)
