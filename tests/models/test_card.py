"""The card of a kept model says what its files say."""

import csv
import shutil

import pytest
from failing import fails

from vcl_radial.models import format as files
from vcl_radial.reporting.model_card import card_text


def section(text, heading):
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def cells(text):
    return [
        [cell.strip() for cell in line.split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]


def test_a_card_has_the_tasks_with_their_classes_and_final_scores(finished_run):
    path = finished_run()
    text = card_text(path)
    _, _, *rows = cells(section(text, "Tasks and scores"))
    with (path / "accuracy.csv").open() as file:
        final = [row for row in csv.DictReader(file) if row["task_trained"] == "5"]
    by_metric = {
        m: [float(r["value"]) for r in final if r["metric"] == m] for m in ("accuracy", "ece")
    }
    assert len(rows) == 5
    for task, (name, classes, accuracy, _, ece) in enumerate(rows):
        assert name.removeprefix("| ") == classes == f"{2 * task}, {2 * task + 1}"
        assert float(accuracy) == pytest.approx(by_metric["accuracy"][task], abs=0.01)
        assert float(ece.removesuffix(" |")) == pytest.approx(by_metric["ece"][task], abs=0.01)
    mean = sum(by_metric["ece"]) / 5
    assert f"{mean:.2f} %" in section(text, "Calibration")
    assert files.read_card(path)["checksum"] in section(text, "Model")
    assert "digits" in section(text, "Data")


def test_training_points_in_the_files_are_declared(finished_run):
    assert "no training points" in card_text(finished_run())
    path = finished_run("replay")
    points = files.read_card(path)["training_points"]
    assert points
    assert f"{points:,} training points" in section(card_text(path), "Training data in the files")


def test_a_model_without_its_run_has_a_card_without_scores(finished_run, tmp_path):
    for name in (files.CARD, files.TENSORS):
        shutil.copy(finished_run() / name, tmp_path)
    text = card_text(tmp_path)
    assert len(cells(section(text, "Tasks and scores"))) == 7
    assert "accuracy" not in text


def test_names_end_no_cell_and_are_no_markup(finished_run, tmp_path):
    card, state = files.decode(finished_run())
    about = {key: value for key, value in card.items() if key not in ("format", "checksum")}
    about["heads"] = [["a|b", "<b>"], *card["heads"][1:]]
    for name, content in files.encode(state, about).items():
        (tmp_path / name).write_bytes(content)
    assert "| a\\|b, &lt;b> |" in card_text(tmp_path)


def test_the_command_prints_the_card_of_a_run(finished_run, command, tmp_path):
    code, out, err = command("card", str(finished_run()))
    assert (code, err) == (0, [])
    assert out == card_text(finished_run())
    with fails(tmp_path, "--no-model"):
        card_text(tmp_path)
