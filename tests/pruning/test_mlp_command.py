import argparse
import builtins
import csv
import json
import warnings

import pytest

from vcl_radial.cli import prune_mlp
from vcl_radial.errors import UserError
from vcl_radial.papers.pruning import mlp, mlp_methods, mlp_report
from vcl_radial.papers.pruning.mlp_methods import make_unit
from vcl_radial.papers.pruning.mlp_report import NOTEBOOK, make_claims, make_curves
from vcl_radial.runs.result_file import Unit, read, write

CHOSEN = ["--dataset", "digits", "--epochs", "1", "--seeds", "2", "--method", "badam", "mc-dropout"]
WHERE = {
    "commit": "abc",
    "device": "cpu",
    "processor": "a processor",
    "packages": {"torch": "2"},
    "seconds": 60.0,
}


@pytest.fixture
def call(tmp_path, monkeypatch):
    """The subcommand alone, on small networks."""
    small = {
        name: mlp_methods.Method(
            method.recipe.model_copy(update={"hidden": [8, 8]}),
            method.dropout,
            method.mask_samples,
            method.note,
        )
        for name, method in mlp_methods.METHODS.items()
    }
    monkeypatch.setattr(mlp_methods, "METHODS", small)
    monkeypatch.setattr(mlp, "METHODS", small)
    monkeypatch.setattr(mlp_report, "METHODS", small)

    def call(*words):
        parser = argparse.ArgumentParser()
        prune_mlp.add_arguments(parser)
        return prune_mlp.run(parser.parse_args([*words, "--out", str(tmp_path / "out")]))

    return call


@pytest.mark.slow
def test_finished_networks_are_kept_and_the_page_tells_what_they_gave(call, tmp_path, capsys):
    assert call(*CHOSEN) == 0
    assert "digits: 4 networks to train\n" in capsys.readouterr().out
    report = tmp_path / "out" / "report"
    page = (report / "README.md").read_bytes()
    numbers = (report / "pruning-mlp.csv").read_bytes()
    assert call(*CHOSEN) == 0
    assert "0 networks to train, 4 kept from before" in capsys.readouterr().out
    assert (report / "README.md").read_bytes() == page

    one = next((tmp_path / "out").rglob("badam/seed-1-*.json"))
    one.write_text(one.read_text().replace("magnitude", "magnitudE"))
    assert call(*CHOSEN) == 0
    assert "1 networks to train, 3 kept from before" in capsys.readouterr().out
    assert (report / "pruning-mlp.csv").read_bytes() == numbers

    text = page.decode()
    assert (
        "`vcl-radial prune mlp --method badam mc-dropout --dataset digits --seeds 2 --epochs 1`"
        in text
    )
    assert "sqrt(keep / (1 - keep))" in text
    assert all((report / f"pruning-mlp.{kind}").stat().st_size > 1000 for kind in ("png", "svg"))
    with (report / "pruning-mlp.csv").open() as file:
        rows = list(csv.DictReader(file))
    kinds = {(row["panel"], row["curve"]) for row in rows}
    # There is no order by signal-to-noise under dropout.
    assert kinds == {
        ("signal-to-noise", "badam"),
        ("magnitude", "badam"),
        ("magnitude", "mc-dropout"),
    }


@pytest.mark.usefixtures("no_pictures")
def test_other_settings_are_another_unit(call, tmp_path, capsys):
    chosen = ["--dataset", "digits", "--seeds", "1", "--method", "bbb"]
    call(*chosen, "--epochs", "1")
    call(*chosen, "--epochs", "2")
    assert "1 networks to train\n" in capsys.readouterr().out.split("\n", 1)[1]
    assert len(list((tmp_path / "out").rglob("seed-0-*.json"))) == 2


def test_claims_are_decided_by_the_numbers():
    def result(method, **numbers):
        return make_unit(method, 0, "digits"), numbers, WHERE

    high, low = [98.0] * 19, [50.0] * 19
    badam = result("badam", **{"signal-to-noise": high, "magnitude": low})
    other = result("vadam", **{"signal-to-noise": low, "magnitude": high})
    agree = make_claims(make_curves([badam, other]))
    assert [claim.agrees for claim in agree] == [True, True, True]
    worse = result("badam", **{"signal-to-noise": low, "magnitude": high})
    better = result("vadam", **{"signal-to-noise": high, "magnitude": low})
    differ = make_claims(make_curves([worse, better]))
    assert [claim.agrees for claim in differ] == [False, False, False]
    assert "VADAM" in differ[1].because


def test_the_published_notebook_says_the_same_before_pruning_in_either_order():
    first, second = NOTEBOOK.values()
    assert list(first) == list(second)
    assert first[0] == second[0]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"unit": {}}', "\udcff"])
def test_a_damaged_result_counts_as_not_finished(damage, tmp_path):
    unit = Unit(method="badam", seed=3)
    write(unit, tmp_path, {"a": [1.5]}, WHERE)
    assert read(unit, tmp_path) == ({"a": [1.5]}, WHERE)
    path = unit.path(tmp_path)
    altered = json.loads(path.read_text())
    altered["numbers"]["a"] = [1.6]
    path.write_text(json.dumps(altered))
    assert read(unit, tmp_path) is None
    path.write_text(damage, errors="surrogateescape")
    assert read(unit, tmp_path) is None
    assert read(Unit(method="badam", seed=4), tmp_path) is None


def test_a_folder_that_cannot_be_made_is_said_before_the_work(call, tmp_path, monkeypatch):
    monkeypatch.setattr(mlp, "train", pytest.fail)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: cannot be written"):
        call(*CHOSEN, "--to", str(tmp_path / "file"))


def test_what_other_packages_say_as_they_are_imported_is_not_shown(
    call, tmp_path, monkeypatch, recwarn
):
    real = builtins.__import__

    def warns(name, *rest):
        if name == "vcl_radial.papers.pruning.mlp":
            warnings.warn_explicit("no QP solver found", UserWarning, pytest.__file__, 1)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", warns)
    with pytest.raises(UserError):
        call("--data-dir", str(tmp_path))
    assert not recwarn.list


def test_data_that_are_not_there_are_said_in_one_line(call, tmp_path):
    with pytest.raises(UserError, match="train-images"):
        call("--data-dir", str(tmp_path))
