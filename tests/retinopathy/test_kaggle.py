"""Kaggle's whole set in the layout in which it is published: tables, splits, a run, its costs."""

import csv

import numpy as np
import pytest
from failing import data_fails, refuses
from PIL import Image

from vcl_radial.cli import main
from vcl_radial.data.fundus import Photograph, Photographs, load_photographs, split_by_patient
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy.prepare import split_of
from vcl_radial.tracks.retinopathy.settings import DataSettings


def write_part(folder, table, header, patients):
    rows = []
    for patient in patients:
        for eye in ("left", "right"):
            path = folder / f"{patient}_{eye}.jpeg"
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng(patient).integers(40, 256, (20, 24, 3), dtype=np.uint8)
            Image.fromarray(noise).save(path)
            usage = "Public" if patient % 3 else "Private"
            rows.append([path.stem, patient % 5, usage][: len(header)])
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def root(tmp_path):
    """20 patients, 40 pictures."""
    folder = tmp_path / "data" / "retinopathy" / "EyePACS"
    write_part(folder / "train", folder / "trainLabels.csv", ["image", "level"], range(10, 18))
    header = ["image", "level", "Usage"]
    write_part(folder / "test", folder / "retinopathy_solution.csv", header, range(18, 30))
    return tmp_path / "data"


SMALL = {"dataset": "kaggle-eyepacs-all", "size": 16}


def test_both_tables_are_one_with_the_competitions_parts(root):
    photographs = load_photographs("kaggle-eyepacs-all", root)
    assert len(photographs) == 40
    assert len({*photographs.patients.tolist()}) == 20
    settings = DataSettings(**SMALL, split="published")
    split = split_of("kaggle", photographs, settings)
    assert [len(split.train), len(split.validation), len(split.test)] == [16, 16, 8]
    tested = {int(row.patient) for row in photographs.select(split.test).rows}
    assert tested == {18, 21, 24, 27}


def test_the_training_part_alone_is_still_a_data_set(root):
    assert len(load_photographs("kaggle-eyepacs", root)) == 16


def test_a_set_without_its_solution_is_refused_by_the_missing_file(root):
    solution = root / "retinopathy" / "EyePACS" / "retinopathy_solution.csv"
    solution.unlink()
    with data_fails(solution):
        load_photographs("kaggle-eyepacs-all", root)


def test_an_unknown_usage_is_named(root):
    solution = root / "retinopathy" / "EyePACS" / "retinopathy_solution.csv"
    solution.write_text(solution.read_text().replace("18_left,3,Private", "18_left,3,Secret"))
    with data_fails(root / "retinopathy" / "EyePACS", "18_left", "'secret'"):
        load_photographs("kaggle-eyepacs-all", root)


@pytest.mark.parametrize(
    ("benchmark", "sizes"),
    [
        ("retinopathy-kaggle", [44_594, 7_026, 10_000]),
        ("retinopathy-kaggle-256", [10_992, 2_748, 10_000]),
    ],
)
def test_the_shares_of_the_whole_set_are_the_papers_sizes(benchmark, sizes):
    (run,) = plan(benchmark, ["radial-vcl"], [0], tuned=True)
    levels = np.random.default_rng(0).choice(5, 44_351, p=[0.735, 0.07, 0.15, 0.025, 0.02])
    rows = tuple(
        Photograph(f"{patient}_{eye}", str(patient), eye, int(level), "eyepacs")
        for patient, level in enumerate(levels)
        for eye in ("left", "right")
    )
    split = split_of("kaggle", Photographs("kaggle", rows, reader=None), run.data)
    parts = [split.train, split.validation, split.test]
    assert [len(part) for part in parts] == sizes
    assert len(np.unique(np.concatenate(parts))) == sum(sizes)
    patients = [{rows[k].patient for k in part} for part in parts]
    assert len(set.union(*patients)) == sum(map(len, patients))


def test_a_share_to_train_on_leaves_patients_out_and_the_default_leaves_none(root):
    photographs = load_photographs("kaggle-eyepacs-all", root)
    split = split_by_patient(photographs, train=0.4, validation=0.1, test=0.2)
    assert [len(split.train), len(split.validation), len(split.test)] == [16, 4, 8]
    every = split_by_patient(photographs, train=0.7, validation=0.1, test=0.2)
    whole = split_by_patient(photographs, validation=0.1, test=0.2)
    assert np.array_equal(every.train, whole.train)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"data.train": 0.9}, "data.train = 0.9"),
        ({"data.train": 0.0}, "data.train = 0"),
        ({"data.split": "published"}, 'data.split = "random"'),
        ({"data.shifted": ["kaggle-eyepacs"]}, "kaggle-eyepacs-all and kaggle-eyepacs"),
    ],
)
def test_shares_and_sets_that_do_not_go_together_are_refused(settings, named):
    with refuses(named):
        plan("retinopathy-kaggle", ["radial-vcl"], [0], settings)


def test_the_papers_channels_are_those_of_each_method():
    methods = ["radial-vcl", "gaussian-vcl", "mc-dropout", "deep-ensemble", "naive"]
    runs = plan("retinopathy-kaggle", methods, [0], tuned=True)
    assert [run.recipe.channels for run in runs] == [46, 46, 64, 64, 64]
    assert {(run.recipe.batch_size, run.data.size) for run in runs} == {(16, 512)}


def command(root, out, *more):
    sets = ["data.size=16", "channels=2", "epochs=1", "batch_size=4", "eval_samples=2"]
    sets += ["data.train=0.4", "data.validation=0.2", "data.test=0.4"]
    line = ["run", "retinopathy-kaggle", "--method", "radial-vcl", "naive", "--tuned"]
    return [*line, "--data-dir", str(root), "--out", str(out), "--jobs", "1", "--set", *sets, *more]


def test_a_dry_run_prints_the_costs_and_trains_nothing(root, tmp_path, capsys):
    assert main(command(root, tmp_path / "runs", "--dry-run")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "retinopathy-kaggle: 2 runs"
    assert lines[1].endswith("16 photographs to train on, 8 to choose epochs on, 16 to test on")
    assert lines[2].startswith("kaggle-eyepacs-all: 40 photographs of 16 pixels are decoded once")
    assert {"radial-vcl: 1 run", "naive: 1 run"} <= {*lines[3:]}
    assert sum("; 4 steps of 4; " in line for line in lines) == 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_forty_pictures_in_kaggles_layout_are_trained_on(root, tmp_path, capsys):
    assert main(command(root, tmp_path / "runs")) == 0
    assert (tmp_path / "runs" / "report" / "retinopathy-kaggle" / "summary.md").is_file()
