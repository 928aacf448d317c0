import pytest

from reports.papers.analysis import Setting
from reports.seeds.pruning.mlp import pruning_mlp
from reports.seeds.pruning.mlp import training as mlp_training
from reports.seeds.pruning.mlp.pruning_mlp import NOTEBOOK, make_claims
from reports.seeds.pruning.track import Result
from vcl_radial.errors import Diverged, UserError

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


def test_claims_are_decided_by_pairs_of_seeds():
    high, low = [98.0] * 19, [50.0] * 19

    def verdicts(badam, vadam, seeds=9):
        results = [
            Result(type("Run", (), {"method": method, "seed": seed}), numbers, {})
            for method, numbers in (("badam", badam), ("vadam", vadam))
            for seed in range(seeds)
        ]
        claims = make_claims(results)
        return [str(claim.verdict) for claim in claims], claims[1].because

    good = {"signal-to-noise": high, "magnitude": low}
    bad = {"signal-to-noise": low, "magnitude": high}
    assert verdicts(good, bad)[0] == ["reproduced"] * 2
    worse, because = verdicts(bad, good)
    assert worse == ["not reproduced"] * 2
    assert "VADAM" in because
    # Six tests: with seven seeds the exact one has p = 6 / 64 after the correction.
    assert verdicts(good, bad, seeds=7)[0] == ["no evidence either way"] * 2


def test_the_published_notebook_says_the_same_before_pruning_in_either_order():
    first, second = NOTEBOOK.values()
    assert list(first) == list(second)
    assert first[0] == second[0]


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
