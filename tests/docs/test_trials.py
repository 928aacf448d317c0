"""The settings of the recipes are those of the trials that they name."""

import json
import re
import tomllib

import pandas as pd
import pytest
from doc_pages import ROOT

from vcl_radial.reporting.labels import flat

TRIALS = ROOT / "reports/split-fashion-tuned/trials.csv.gz"
NOT_SEARCHED = {"sweep", "benchmark", "method", "trial", "outcome", "score"}
COMMENT = re.compile(
    r"# (?:As )?(?P<sweep>tune-[\w-]+?)(?: gave it for (?P<other>[\w-]+))?,"
    r" trial (?P<trial>\d+) of (?P<trials>\d+)[^\[]*\n\[tuned\.(?P<benchmark>[\w-]+)\]"
)


def sources():
    """What recipes say of the trials of these searches: recipe, and a match of `COMMENT`."""
    kept = set(pd.read_csv(TRIALS)["sweep"])
    for path in sorted((ROOT / "baselines").rglob("*.toml")):
        for match in COMMENT.finditer(path.read_text()):
            if match["sweep"] in kept:
                yield pytest.param(path, match, id=f"{path.stem}-{match['sweep']}")


def plain(value):
    return json.loads(value) if isinstance(value, str) and value[0] in "[0123456789" else value


@pytest.mark.parametrize(("path", "source"), list(sources()))
def test_a_setting_is_that_of_the_trial_which_its_recipe_names(path, source):
    trials = pd.read_csv(TRIALS)
    method = source["other"] or path.stem
    trials = trials[(trials["sweep"] == source["sweep"]) & (trials["method"] == method)]
    assert len(trials) == int(source["trials"])
    (trial,) = trials[trials["trial"] == int(source["trial"])].to_dict("records")
    tuned = flat(tomllib.loads(path.read_text())["tuned"][source["benchmark"]])
    searched = {key: plain(v) for key, v in trial.items() if key not in NOT_SEARCHED and v == v}
    assert len(searched) > 1
    for key, value in searched.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        assert tuned[key] == (pytest.approx(value, rel=0.01) if number else value), key
