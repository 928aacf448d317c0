from types import SimpleNamespace

import pytest

from reports.papers.analysis import Setting
from reports.seeds.pruning.mlp import pruning_mlp
from reports.seeds.pruning.mlp import training as mlp_training
from reports.seeds.pruning.mlp.pruning import SHARES
from reports.seeds.pruning.mlp.pruning_mlp import (
    MAGNITUDE,
    RATIO,
    accuracies_of,
    compare,
)
from reports.seeds.pruning.track import Result
from vcl_radial.errors import Diverged, UserError
from vcl_radial.metrics.verdicts import Verdict

SETTINGS = {"data.dataset": "digits", "epochs": 1, "hidden": [8, 8]}


def setting(out, *methods, **others):
    return Setting(out=out, seeds=2, jobs=1, methods=methods, settings=SETTINGS | others)


@pytest.mark.slow
def test_every_method_has_its_curves_and_altered_numbers_are_made_again(tmp_path, capsys):
    analysis = pruning_mlp.analyse(setting(tmp_path, "badam", "mc-dropout"))
    assert "pruning-mlp: 4 runs to do" in capsys.readouterr().out
    panels = {(curve.panel, curve.name) for curve in analysis.curves}
    of_seeds = {(panel, name) for panel, name in panels if "seed" in panel}
    assert {panel.split(", ")[1] for panel, _ in of_seeds} == {"seed 0", "seed 1"}
    kinds = panels - of_seeds
    # There is no order by signal-to-noise under dropout.
    assert kinds == {
        ("signal-to-noise", "badam"),
        ("magnitude", "badam"),
        ("magnitude", "mc-dropout"),
    }
    assert "sqrt(keep / (1 - keep))" in dict(analysis.settings)["MC dropout"]
    numbers = next(tmp_path.glob("pruning-mlp/badam/seed-1-*/numbers.json"))
    numbers.write_text(numbers.read_text().replace("magnitude", "magnitudE"))
    assert pruning_mlp.analyse(setting(tmp_path, "badam", "mc-dropout")).curves == analysis.curves
    assert "1 run to do, 1 at a time, 3 kept from before" in capsys.readouterr().out


HIGH, LOW = [98.0] * len(SHARES), [50.0] * len(SHARES)


@pytest.mark.parametrize(
    ("badam", "vadam", "seeds", "verdict"),
    [
        (HIGH, LOW, 9, Verdict.REPRODUCED),
        (LOW, HIGH, 9, Verdict.NOT_REPRODUCED),
        # Six tests: with seven seeds the exact one has p = 6 / 64 after the correction.
        (HIGH, LOW, 7, Verdict.NO_EVIDENCE),
    ],
)
def test_claims_are_decided_by_pairs_of_seeds(badam, vadam, seeds, verdict):
    orders = {"badam": {RATIO: badam, MAGNITUDE: vadam}, "vadam": {RATIO: vadam, MAGNITUDE: badam}}
    results = [
        Result(SimpleNamespace(method=method, seed=seed), numbers, {})
        for method, numbers in orders.items()
        for seed in range(seeds)
    ]
    numbers, rules = compare(accuracies_of(results))
    assert set(rules.values()) == {verdict}
    assert ("VADAM" in numbers["ahead"]) == (badam is LOW)


def test_without_badam_there_is_no_evidence():
    result = Result(SimpleNamespace(method="vadam", seed=0), {RATIO: HIGH, MAGNITUDE: LOW}, {})
    assert set(compare(accuracies_of([result]))[1].values()) == {Verdict.NO_EVIDENCE}


def test_data_that_are_not_there_are_said_in_one_line(tmp_path):
    with pytest.raises(UserError, match="train-images"):
        pruning_mlp.analyse(Setting(data_dir=tmp_path, out=tmp_path / "runs", jobs=1))


def test_a_method_that_diverges_is_reported_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    def train(recipe, *rest, real=mlp_training.train):
        if recipe.strategy == "naive":
            raise Diverged("the loss became nan")
        return real(recipe, *rest)

    monkeypatch.setattr(mlp_training, "train", train)
    analysis = pruning_mlp.analyse(setting(tmp_path, "bbb", "mc-dropout"))
    assert {curve.name for curve in analysis.curves} == {"bbb"}
    assert "reports: mc-dropout seed 1: the loss became nan\n" in capsys.readouterr().err
    with pytest.raises(UserError, match="no run was finished; the first: the loss became nan"):
        pruning_mlp.analyse(setting(tmp_path, "mc-dropout"))
