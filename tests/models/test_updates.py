"""A kept model that learns one more task is the model of one run over all tasks."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from failing import data_fails, fails, refuses
from PIL import Image
from tiny_runs import MULTI_HEAD, SINGLE_HEAD, accuracy_bytes, carried_out, tiny_run

import vcl_radial as vr
from vcl_radial.cli import main
from vcl_radial.data.streams import load_dataset
from vcl_radial.errors import VclRadialError
from vcl_radial.models import format as files
from vcl_radial.models.predict import predict_file
from vcl_radial.reporting.gather import gather
from vcl_radial.runs import kept, tracks
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.updating import planned
from vcl_radial.tracks.continual.networks import stream_for

QUICK = ("radial-vcl", "ewc", "laplace-kronecker", "replay", "single-task")
ALL_AT_ONCE = ("joint",)


def run_of(tasks, method="radial-vcl", benchmark=MULTI_HEAD, **settings):
    return tiny_run(method, benchmark, **{"stream.first_tasks": tasks, **settings})


def folder_of(run, out):
    carried_out(run, out)
    return RunFolder(out, run).path


def task_file(path, run, task):
    """The raw images of a task of the run's stream, with its test part."""
    stream, images = stream_for(run.stream, run.recipe, None, run.seed), load_dataset("digits")
    x = torch.cat([images.train_x, images.test_x]).numpy()
    y = torch.cat([images.train_y, images.test_y]).numpy()
    train, test = stream.rows(task, "train"), stream.rows(task, "test")
    np.savez(path, x=x[train], y=y[train], x_test=x[test], y_test=y[test])
    return path


def updated(folder, data, out, **settings):
    """The folder of an update; the task's name is that of its classes in the benchmark."""
    vr.update(folder, data, out=out, device="cpu", **settings)
    return max(out.glob("*/*/seed-*"), key=lambda path: len(path.parts[-3]))


def ordered(node):
    """The tree of a state with the keys of each dictionary in order."""
    if isinstance(node, dict) and "dict" in node:
        return sorted(((key, ordered(item)) for key, item in node["dict"]), key=str)
    return node


def assert_equal(folder, other):
    """Two folders hold the same model and the same scores."""
    card, cards_twin = files.read_card(folder), files.read_card(other)
    assert ordered(card["state"]) == ordered(cards_twin["state"])
    for key in ("checksum", "heads", "tasks", "input"):
        assert card[key] == cards_twin[key], key
    for name in ("accuracy.csv", "metrics.json"):
        assert (folder / name).read_bytes() == (other / name).read_bytes()
    if (folder / "layers.csv").exists():
        assert (folder / "layers.csv").read_bytes() == (other / "layers.csv").read_bytes()


def check_truth(method, benchmark, out, **settings):
    whole, first = (run_of(n, method, benchmark, **settings) for n in (3, 2))
    data = task_file(out / "new.npz", whole, 2)
    folder = updated(folder_of(first, out / "first"), data, out / "updates", name="4, 5")
    assert_equal(folder_of(whole, out / "whole"), folder)


@pytest.mark.parametrize("benchmark", [MULTI_HEAD, SINGLE_HEAD])
@pytest.mark.parametrize("method", QUICK)
def test_two_tasks_and_an_update_are_three_tasks_in_one_run(method, benchmark, tmp_path):
    check_truth(method, benchmark, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted({*vr.list_methods()} - {*QUICK, *ALL_AT_ONCE}))
def test_so_it_is_for_every_method(method, tmp_path):
    check_truth(method, MULTI_HEAD, tmp_path)


def test_a_convolutional_network_and_statistics_of_the_first_task_are_updated_too(tmp_path):
    more = {"network": "convnet", "stream.statistics": "first-task", "batch_size": 128}
    check_truth("gaussian-vcl", MULTI_HEAD, tmp_path, **more)


def test_two_updates_are_two_tasks_more(tmp_path):
    whole, folder = run_of(3), folder_of(run_of(1), tmp_path / "first")
    before = contents(folder)
    for task, name in ((1, "2, 3"), (2, "4, 5")):
        data = task_file(tmp_path / f"{task}.npz", whole, task)
        folder = updated(folder, data, tmp_path / "updates", name=name)
    assert_equal(folder_of(whole, tmp_path / "whole"), folder)
    assert contents(next((tmp_path / "first").glob("*/*/seed-*"))) == before


def contents(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).digest() for file in folder.iterdir()}


def test_a_method_that_needs_all_tasks_at_once_is_refused(tmp_path):
    folder = folder_of(run_of(2, "joint"), tmp_path)
    with fails(folder, "joint"):
        vr.update(folder, task_file(tmp_path / "new.npz", run_of(3), 2), out=tmp_path)


def test_an_interrupted_update_ends_with_the_same_bytes(tmp_path):
    folder = folder_of(run_of(2, epochs=2), tmp_path / "first")
    data = task_file(tmp_path / "new.npz", run_of(3), 2)
    model = kept.load(folder)
    run = planned(tracks.find("continual"), model, folder, data, None, {})
    carried_out(run, tmp_path / "a", ("epoch", 3))
    assert not RunFolder(tmp_path / "a", run).finished()
    carried_out(run, tmp_path / "a")
    carried_out(run, tmp_path / "b")
    assert accuracy_bytes(run, tmp_path / "a") == accuracy_bytes(run, tmp_path / "b")
    assert_equal(RunFolder(tmp_path / "a", run).path, RunFolder(tmp_path / "b", run).path)


def test_training_keys_change_the_training_and_no_others(tmp_path):
    folder = folder_of(run_of(2), tmp_path / "first")
    data = task_file(tmp_path / "new.npz", run_of(3), 2)
    one = updated(folder, data, tmp_path / "one")
    two = updated(folder, data, tmp_path / "two", settings={"epochs": 2, "kl_weight": 0.5})
    assert files.read_card(one)["checksum"] != files.read_card(two)["checksum"]
    with fails("hidden", "learning_rate"):
        updated(folder, data, tmp_path / "three", settings={"hidden": [3]})
    with refuses("epochs"):
        updated(folder, data, tmp_path / "three", settings={"epochs": 0})


def test_one_head_knows_its_classes_by_name_and_has_room_for_new_ones(tmp_path):
    folder = folder_of(run_of(2, "naive", SINGLE_HEAD), tmp_path)
    x = np.random.default_rng(0).integers(0, 17, (60, 64)).astype(np.uint8)
    np.savez(tmp_path / "new.npz", x=x, y=np.array(["3", "0", "boot"] * 20))
    model = vr.update(folder, tmp_path / "new.npz", out=tmp_path, settings={"batch_size": 8})
    assert model.card["tasks"][2]["outputs"] == [0, 3, 4]
    assert model.classes[0][:5] == ["0", "1", "2", "3", "boot"]
    np.savez(tmp_path / "wide.npz", x=x, y=np.arange(60) % 12 + 10)
    model = vr.update(folder, tmp_path / "wide.npz", out=tmp_path, settings={"batch_size": 8})
    assert model.card["tasks"][2]["outputs"] == [*range(4, 16)]
    assert model.card["grown"] == [6]


@pytest.mark.parametrize("benchmark", [MULTI_HEAD, SINGLE_HEAD])
def test_the_probability_of_a_class_that_is_called_as_a_free_output_is_its_own(benchmark, tmp_path):
    folder = folder_of(run_of(2, "naive", benchmark), tmp_path)
    x = np.random.default_rng(0).integers(0, 17, (60, 64)).astype(np.uint8)
    names = ["8", "9"] if benchmark == SINGLE_HEAD else ["1"]
    np.savez(tmp_path / "new.npz", x=x, y=np.array(names * (60 // len(names))))
    model = vr.update(folder, tmp_path / "new.npz", out=tmp_path, settings={"batch_size": 8})
    head = model.classes[-1]
    assert len({*head}) == len(head)
    assert [head[output] for output in model.card["tasks"][2]["outputs"]] == names
    to = tmp_path / "predicted.csv"
    predict_file(model, str(tmp_path / "new.npz"), to, task="new", probabilities=True)
    table = pd.read_csv(to, dtype={"class": str})
    assert [row[f"p({row['class']})"] for _, row in table.iterrows()] == [*table["probability"]]


def test_a_folder_of_images_is_a_task(tmp_path):
    folder = folder_of(run_of(2, "naive"), tmp_path)
    images = load_dataset("digits")
    for name, label in (("eight", 8), ("nine", 9)):
        (tmp_path / "more" / name).mkdir(parents=True)
        for number, x in enumerate(images.train_x[images.train_y == label][:30]):
            Image.fromarray(x.numpy()).save(tmp_path / "more" / name / f"{number}.png")
    model = vr.update(folder, tmp_path / "more", out=tmp_path, settings={"batch_size": 8})
    assert model.tasks[-1] == "more"
    assert model.classes[2] == ["eight", "nine"]


def test_earlier_tasks_without_data_keep_their_scores_and_get_no_new_ones(tmp_path, capsys):
    folder = folder_of(run_of(1, "naive"), tmp_path / "first")
    data = [task_file(tmp_path / f"task-{t}.npz", run_of(3), t) for t in (1, 2)]
    folder = updated(folder, data[0], tmp_path / "updates")
    data[0].unlink()
    arguments = [str(folder), str(data[1]), "--out", str(tmp_path / "updates"), "--device", "cpu"]
    assert main(["update", *arguments]) == 0
    assert "task-1 is not scored again" in capsys.readouterr().err
    last = max((tmp_path / "updates").glob("*/*/seed-*"), key=lambda path: len(path.parts[-3]))
    lines = (last / "accuracy.csv").read_text().splitlines()
    scored = {tuple(map(int, line.split(",")[:2])) for line in lines[1:]}
    assert scored == {(1, 1), (2, 1), (2, 2), (3, 1), (3, 3)}
    assert main(["list", str(tmp_path / "updates")]) == 0
    shown = capsys.readouterr().out
    assert files.read_card(folder)["checksum"][:12] in shown


def test_the_seeds_of_a_method_are_updated_each_and_predict_as_one(tmp_path):
    folders = [folder_of(run_of(2, seed=seed), tmp_path / "first") for seed in (0, 1)]
    data = task_file(tmp_path / "new.npz", run_of(3), 2)
    both = vr.update(folders[0].parent, data, out=tmp_path / "both")
    models = [vr.update(folder, data, out=tmp_path / "each") for folder in folders]
    x = load_dataset("digits").test_x[:5]
    mean = torch.stack([model.predict(x, 2) for model in models]).mean(0)
    assert torch.allclose(both.predict(x, 2), mean)


def test_scores_of_uncertainty_end_with_the_benchmarks_tasks(tmp_path):
    run = run_of(2, "naive", **{"stream.uncertainty": True, "stream.validation": 0.2})
    folder = folder_of(run, tmp_path / "first")
    assert "coverage" in (folder / "accuracy.csv").read_text()
    folder = updated(folder, task_file(tmp_path / "new.npz", run_of(3), 2), tmp_path / "updates")
    assert "coverage" not in (folder / "accuracy.csv").read_text()


def test_bad_data_are_refused_before_any_training(tmp_path):
    folder = folder_of(run_of(2, "naive"), tmp_path / "first")
    out, file = tmp_path / "out", tmp_path / "new.npz"
    x, y = np.zeros((40, 64), np.uint8), np.arange(40) % 2
    x[:, 0] = y
    wrong = {
        "a row each": {"x": x, "y": y[:-1]},
        "too wide": {"x": np.zeros((40, 65)), "y": y},
        "no classes": {"x": x},
        "fractions": {"x": x, "y": y / 2},
        "objects": {"x": x, "y": y.astype(object)},
        "not finite": {"x": np.full((40, 64), np.nan), "y": y},
        "half a test part": {"x": x, "y": y, "x_test": x},
        "the other half": {"x": x, "y": y, "y_test": y},
        "an unknown class": {"x": x, "y": y, "x_test": x, "y_test": y + 1},
        "too many classes": {"x": x, "y": np.arange(40) % 3},
        "one row of a class": {"x": x, "y": np.eye(1, 40)[0].astype(int)},
    }
    for arrays in wrong.values():
        np.savez(file, **arrays)
        with data_fails(file):
            vr.update(folder, file, out=out)
    np.savez(file, x=x, y=y)
    with fails("name", "--name"):
        vr.update(folder, file, out=out, name="0, 1")
    with fails("name", "--name"):
        vr.update(folder, file, out=out, name="a/b")
    with fails("name", "--name"):  # `predict --task 0` means the first task
        vr.update(folder, file, out=out, name="0")
    with data_fails(tmp_path / "none.npz"):
        vr.update(folder, tmp_path / "none.npz", out=out)
    with refuses("batch_size"):
        vr.update(folder, file, out=out, settings={"batch_size": 100})
    (folder / "accuracy.csv").unlink()
    with refuses(folder, "accuracy.csv"):
        vr.update(folder, file, out=out, settings={"batch_size": 8})
    assert not out.exists()


def test_a_report_shows_updates_with_other_data_of_one_name_apart(tmp_path):
    folder = folder_of(run_of(2, "naive"), tmp_path / "first")
    for task in (2, 3):
        data = task_file(tmp_path / "new.npz", run_of(4), task)
        vr.update(folder, data, out=tmp_path / "out")
    runs, _ = gather(tmp_path / "out")
    assert len({run.benchmark for run in runs}) == 2


OWN = """
from vcl_radial.methods.naive import Naive


class Mine(Naive):
    pass
"""


def test_a_users_own_method_is_updated_with_consent_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("own_updated.py").write_text(OWN)
    folder = folder_of(run_of(2, "naive", strategy="own_updated:Mine"), tmp_path / "first")
    data = task_file(tmp_path / "new.npz", run_of(3), 2)
    sys.modules.pop("own_updated")
    with pytest.raises(VclRadialError, match="trust=True"):
        vr.update(folder, data, out=tmp_path)
    assert "own_updated" not in sys.modules
    model = vr.update(folder, data, out=tmp_path, trust=True)
    assert type(model.method).__name__ == "Mine"


def test_an_update_names_its_parent_by_the_checksum_of_its_tensors(tmp_path):
    folder = folder_of(run_of(2, "naive"), tmp_path / "first")
    model = vr.update(folder, task_file(tmp_path / "new.npz", run_of(3), 2), out=tmp_path)
    (link,) = model.card["spec"]["updates"]
    tensors = (folder / files.TENSORS).read_bytes()
    assert link["parent"] == hashlib.sha256(tensors).hexdigest()
    assert json.loads((folder / files.CARD).read_text())["checksum"] == link["parent"]
    assert Path(link["folder"]) == folder


@pytest.mark.parametrize(("table", "key"), [("recipe", "optimizer"), ("stream", "dataset")])
def test_an_update_runs_no_code_that_a_card_names(table, key, tmp_path, monkeypatch):
    folder = folder_of(run_of(2), tmp_path / "first")
    data = task_file(tmp_path / "new.npz", run_of(3), 2)
    (tmp_path / "foreign.py").write_text("open('was-run', 'w').close()\n")
    card = json.loads((folder / files.CARD).read_text())
    card.pop("card_checksum")
    card["spec"][table][key] = "foreign:function"
    card["card_checksum"] = files._checksum_of(card)
    (folder / files.CARD).write_text(json.dumps(card))
    done = folder / "done"
    sums = json.loads(done.read_text())
    sums[files.CARD] = hashlib.sha256((folder / files.CARD).read_bytes()).hexdigest()
    done.write_text(json.dumps(sums))
    monkeypatch.chdir(tmp_path)
    main(["update", str(folder), str(data), "--out", "updates", "--device", "cpu"])
    assert not (tmp_path / "was-run").exists()
