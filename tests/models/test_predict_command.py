"""`vcl-radial predict`: every kind of input has one truth, what `Model` says of the raw arrays."""

import csv
import os
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from failing import data_fails, fails, refuses
from PIL import Image
from tiny_runs import SINGLE_HEAD

import vcl_radial as vr
from vcl_radial.data.streams import load_dataset
from vcl_radial.metrics import accuracy, expected_calibration_error, nll
from vcl_radial.models import inputs
from vcl_radial.models.predict import predict_file

DIGITS = load_dataset("digits")
X, Y = DIGITS.test_x[:40], DIGITS.test_y[:40]


@pytest.fixture
def model(finished_run):
    return vr.load(finished_run())


@pytest.fixture
def one_head(finished_run):
    return vr.load(finished_run(benchmark=SINGLE_HEAD))


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows, name):
    return torch.tensor([float(row[name]) for row in rows])


def images(folder, labelled=True, x=X):
    """Write the digits as images, in the order of their names."""
    for number, (pixels, label) in enumerate(zip(x.numpy(), Y.tolist(), strict=False)):
        path = folder / (str(label) if labelled else ".") / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return str(folder)


def arrays(path, **content):
    np.savez(path, **content)
    return str(path)


def table(path, x=X, y=None, header=None):
    rows = x.flatten(1).tolist()
    names = [f"pixel {n}" for n in range(len(rows[0]))]
    if y is not None:
        names.insert(3, "y")
        for row, label in zip(rows, y, strict=True):
            row.insert(3, label)
    with Path(path).open("w") as file:
        csv.writer(file).writerows([header or names, *rows])
    return str(path)


def test_every_kind_of_input_gives_the_same_predictions(model, tmp_path):
    expected = model.assess(X)
    kinds = {
        "images": images(tmp_path / "flat", labelled=False),
        "whole numbers": arrays(tmp_path / "a.npz", x=X.numpy()),
        "rows": arrays(tmp_path / "b.npz", x=X.flatten(1).double().numpy()),
        "table": table(tmp_path / "c.csv"),
    }
    for data in kinds.values():
        predict_file(model, data, tmp_path / "out.csv")
        rows = rows_of(tmp_path / "out.csv")
        assert [row["task"] for row in rows] == [model.tasks[t] for t in expected.tasks]
        confidence, output = expected.probabilities.max(1)
        heads = [model.classes[task] for task in expected.tasks]
        assert [row["class"] for row in rows] == [h[o] for h, o in zip(heads, output, strict=True)]
        assert torch.allclose(column(rows, "probability"), confidence, atol=1e-5)
        for name in ("entropy", "mutual_information"):
            truth = getattr(expected.uncertainty, name)
            assert torch.allclose(column(rows, name), truth, atol=1e-5)


def test_inputs_are_named_by_file_or_row(model, tmp_path):
    out = tmp_path / "out.csv"
    predict_file(model, images(tmp_path / "classes"), out)
    names = [row["input"] for row in rows_of(out)]
    assert names == sorted(str(Path(str(int(y)), f"{n:02}.png")) for n, y in enumerate(Y))
    predict_file(model, table(tmp_path / "c.csv"), out)
    assert [row["input"] for row in rows_of(out)] == [str(n) for n in range(2, 42)]


def test_a_data_set_is_predicted_on_its_test_part(model, tmp_path):
    predict_file(model, "digits", tmp_path / "out.csv", task="1")
    rows = rows_of(tmp_path / "out.csv")
    assert len(rows) == len(DIGITS.test_x)
    assert {row["task"] for row in rows} == {model.tasks[1]}
    assert {row["class"] for row in rows} <= {"2", "3"}


def check_scores_of(folder, data, to):
    """A run has scored its model on the test part of the data by task: `predict` does it again."""
    model = vr.load(folder)
    rows = [row for row in rows_of(folder / "accuracy.csv") if row["task_trained"] == "5"]
    for number in range(len(model.tasks)):
        lines = predict_file(model, data, to, task=str(number), scores=True)
        for row in rows:
            if int(row["task_evaluated"]) == number + 1 and row["metric"] != "sampling":
                (line,) = [s for s in lines if s.lower().startswith(row["metric"])]
                assert float(line.split()[1]) == pytest.approx(float(row["value"]), abs=0.011)


def test_the_scores_of_a_data_set_are_those_of_the_run(finished_run, tmp_path):
    check_scores_of(finished_run(), "digits", tmp_path / "out.csv")


def test_a_model_of_fashion_mnist_that_was_moved_and_is_read_only(
    finished_run, real_data, tmp_path
):
    folder = finished_run(benchmark="split-fashion-multi-head", batch_size=2000)
    folder = shutil.copytree(folder, tmp_path / "moved")
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555)
    check_scores_of(folder, "fashion-mnist", tmp_path / "out.csv")
    folder.chmod(0o755)


def test_batches_do_not_change_the_table(model, tmp_path, monkeypatch):
    texts = []
    for size in (1024, 7):
        monkeypatch.setattr(inputs, "BATCH", size)
        for data in (
            images(tmp_path / "i"),
            arrays(tmp_path / "a.npz", x=X.numpy()),
            table(tmp_path / "t.csv"),
        ):
            predict_file(model, data, tmp_path / "out.csv", probabilities=True)
            texts.append([row["class"] for row in rows_of(tmp_path / "out.csv")])
    assert texts[:3] == texts[3:]


def test_probabilities_have_a_column_for_each_class_and_sum_to_one(model, tmp_path):
    data = arrays(tmp_path / "a.npz", x=X.numpy())
    for task, classes in ((None, 10), ("1", 2), (model.tasks[2], 2)):
        predict_file(model, data, tmp_path / "out.csv", task=task, probabilities=True)
        for row in rows_of(tmp_path / "out.csv"):
            probs = {name: p for name, p in row.items() if name.startswith("p(")}
            assert len(probs) == classes
            assert sum(float(p) for p in probs.values() if p) == pytest.approx(1, abs=1e-4)
            assert float(probs[f"p({row['class']})"]) == pytest.approx(float(row["probability"]))


def test_scores_are_those_of_the_metrics(one_head, tmp_path):
    log_probs = one_head.predict(X).log()
    expected = [
        f"accuracy {accuracy(log_probs, Y):.2f} %",
        f"NLL {nll(log_probs, Y):.4f} nats",
        f"ECE {expected_calibration_error(log_probs, Y):.2f} %",
    ]
    out = tmp_path / "out.csv"
    for data in (
        images(tmp_path / "images"),
        arrays(tmp_path / "a.npz", x=X.numpy(), y=Y.numpy()),
        arrays(tmp_path / "b.npz", x=X.numpy(), y=Y.double().numpy()),
        arrays(tmp_path / "c.npz", x=X.numpy(), y=np.array([str(int(y)) for y in Y])),
        table(tmp_path / "c.csv", y=Y.tolist()),
    ):
        assert predict_file(one_head, data, out, scores=True) == expected
    assert "task" in rows_of(out)[0]
    assert not rows_of(out)[0]["task"]


def test_the_inferred_head_is_scored_where_classes_name_it(model, tmp_path):
    data = arrays(tmp_path / "a.npz", x=X.numpy(), y=Y.numpy())
    *_, line = predict_file(model, data, tmp_path / "out.csv", scores=True)
    share = 100 * float((model.infer(X) == Y // 2).float().mean())
    assert line == f"head inferred {share:.2f} %"


def test_with_a_task_the_inputs_of_its_classes_are_scored(model, tmp_path):
    data = arrays(tmp_path / "a.npz", x=X.numpy(), y=Y.numpy())
    of_task = Y // 2 == 1
    log_probs = model.predict(X[of_task], 1).log()
    lines = predict_file(model, data, tmp_path / "out.csv", task="1", scores=True)
    assert lines[0] == f"accuracy {accuracy(log_probs, Y[of_task] - 2):.2f} %"
    assert f"{100 * float(of_task.float().mean()):.2f} %" in lines[-1]


def test_labels_may_number_the_outputs_of_a_task_with_named_classes(model, tmp_path):
    model.card["heads"] = [[f"left {n}", f"right {n}"] for n in range(5)]
    names = arrays(tmp_path / "a.npz", x=X.numpy(), y=np.array(["left 4", "right 4"] * 20))
    numbers = arrays(tmp_path / "b.npz", x=X.numpy(), y=np.array([0, 1] * 20))
    by_name, by_number = (
        predict_file(model, data, tmp_path / "out.csv", task="4", scores=True)
        for data in (names, numbers)
    )
    assert by_name == by_number
    with data_fails(numbers, "'0'"):
        predict_file(model, numbers, tmp_path / "out.csv", scores=True)


def test_colour_and_size_must_fit_the_model(model, tmp_path):
    folder, out = tmp_path / "images", tmp_path / "out.csv"
    grey = np.full((8, 8), 3, np.uint8)
    for name, pixels in (
        ("wide", np.zeros((8, 9), np.uint8)),
        ("flat", np.zeros((4, 16), np.uint8)),
        ("colour", np.stack([grey, grey, grey + 1], -1)),
    ):
        folder.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{name}.png")
        with data_fails(folder / f"{name}.png"):
            predict_file(model, str(folder), out)
        (folder / f"{name}.png").unlink()
    Image.fromarray(np.stack([grey] * 3, -1)).save(folder / "grey.png")
    predict_file(model, str(folder), out)
    (folder / "damaged.png").write_bytes(b"\x89PNG")
    with data_fails(folder / "damaged.png"):
        predict_file(model, str(folder), out)


def test_labels_of_arrays_may_be_unknown(model, tmp_path):
    y = np.full(len(X), np.nan)
    y[:4] = 0
    path = arrays(tmp_path / "a.npz", x=X.numpy(), y=y)
    lines = predict_file(model, path, tmp_path / "out.csv", task="0", scores=True)
    assert any("4" in line for line in lines)
    for wrong in (np.zeros((len(X), 1)), np.full(len(X), np.inf)):
        bad = arrays(tmp_path / "b.npz", x=X.numpy(), y=wrong)
        with data_fails(bad):
            predict_file(model, bad, tmp_path / "out.csv", task="0", scores=True)
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as file:
        file.writestr("x", b"")
    with data_fails(tmp_path / "c.npz", "no x"):
        predict_file(model, str(tmp_path / "c.npz"), tmp_path / "out.csv")


def test_wrong_arrays_are_refused(model, tmp_path):
    path, out = tmp_path / "a.npz", tmp_path / "out.csv"
    x = X.double().numpy()
    nan = x.copy()
    nan[7, 3, 3] = np.nan
    for content, named in (
        ({"z": x}, "x"),
        ({"x": x[:, :7]}, "[40, 7, 8]"),
        ({"x": x[0, 0]}, "[8]"),
        ({"x": np.zeros((1, 10_000, 10_000), np.uint8)}, "[1, 10000, 10000]"),
        ({"x": nan}, "row 7"),
        ({"x": x.astype(str)}, "numbers"),
        ({"x": x.astype(object)}, "numbers"),
        ({"x": np.asfortranarray(x)}, "ascontiguousarray"),
        ({"x": x, "y": Y.numpy()[:5]}, "5"),
        ({"x": x + 1j}, "numbers"),
    ):
        np.savez(path, **content)
        with data_fails(path, named):
            predict_file(model, str(path), out)
        assert not out.exists()
    for content in (b"", b"PK\x03\x04", path.read_bytes()[:200]):
        path.write_bytes(content)
        with data_fails(path):
            predict_file(model, str(path), out)


def test_wrong_tables_are_refused(model, tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "out.csv"
    for x, header in ((X[:, :7], None), (torch.cat([X, X], 1), None)):
        table(path, x, header=header)
        with data_fails(path, f"{x[0].numel()} columns"):
            predict_file(model, str(path), out)
    text = Path(table(path)).read_text().splitlines()
    for cell, named in (("one", "'one'"), ("", "''"), ("nan", "row 3"), ("1e999", "row 3")):
        rest = text[2].partition(",")[2]
        path.write_text("\n".join([*text[:2], f"{cell},{rest}", *text[3:]]))
        with data_fails(path, "row 3", named):
            predict_file(model, str(path), out)
    path.write_text("\n".join(text[1:]))  # the first row would be taken for names
    with data_fails(path):
        predict_file(model, str(path), out)
    path.write_text("")
    with data_fails(path):
        predict_file(model, str(path), out)


def test_wrong_names_and_tasks_are_refused_before_a_table_is_begun(model, tmp_path):
    out, data = tmp_path / "out.csv", arrays(tmp_path / "a.npz", x=X.numpy())
    (tmp_path / "empty").mkdir()
    with fails("no-such"):
        predict_file(model, "no-such", out)
    with data_fails(tmp_path / "empty"):
        predict_file(model, str(tmp_path / "empty"), out)
    with fails("task", "9"):
        predict_file(model, data, out, task="9")
    with fails(tmp_path / "out.xlsx", ".csv"):
        predict_file(model, data, tmp_path / "out.xlsx")
    same = Path(table(tmp_path / "c.csv"))
    with fails(same):
        predict_file(model, str(same), same)
    with refuses("out.csv"):
        predict_file(model, data, Path(data) / "out.csv")
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))


def test_scores_need_labels_that_are_classes(model, tmp_path):
    out = tmp_path / "out.csv"
    with fails(images(tmp_path / "flat", labelled=False), "--scores"):
        predict_file(model, str(tmp_path / "flat"), out, scores=True)
    assert not out.exists()
    cats = arrays(tmp_path / "a.npz", x=X.numpy(), y=np.array(["cat"] * len(X)))
    predict_file(model, cats, out)
    with data_fails(cats, "cat"):
        predict_file(model, cats, out, scores=True)


def test_progress_goes_to_the_standard_error_output(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("vcl_radial.data.decoding._PATIENCE", 0.0)
    monkeypatch.setattr(inputs, "BATCH", 10)
    for data, expected in (
        (arrays(tmp_path / "a.npz", x=X.numpy()), "10 of 40"),
        (table(tmp_path / "a.csv"), "10"),
        (images(tmp_path / "images"), "images: 1 of 40"),
    ):
        predict_file(model, data, tmp_path / "out.csv")
        out, err = capsys.readouterr()
        assert not out
        assert err == f"vcl-radial: {data}: {expected}\n"


def test_an_old_table_stays_where_the_new_one_fails(model, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    path = Path(table(tmp_path / "a.csv"))
    path.write_text(path.read_text() + "1,2,3\n")
    with data_fails(path):
        predict_file(model, str(path), out)
    assert out.read_text() == "old"
    assert not list(tmp_path.glob(".*"))


def test_a_pipe_that_its_reader_closes_is_no_fault(model, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    data = arrays(tmp_path / "a.npz", x=np.concatenate([X.numpy()] * 500))

    read = model.read

    def close_after_first(*arguments):
        for number, batch in enumerate(read(*arguments)):
            if number == 1:
                os.close(reader)
            yield batch

    monkeypatch.setattr(model, "read", close_after_first)
    predict_file(model, data, tmp_path / "pipe")


def test_a_parquet_file_holds_the_same_table(model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    data = arrays(tmp_path / "a.npz", x=X.numpy())
    for name in ("out.csv", "out.parquet"):
        predict_file(model, data, tmp_path / name, probabilities=True)
    rows = rows_of(tmp_path / "out.csv")
    for row, other in zip(
        rows, parquet.read_table(tmp_path / "out.parquet").to_pylist(), strict=True
    ):
        assert row.keys() == other.keys()
        assert (row["input"], row["class"]) == (other["input"], other["class"])
        assert float(row["entropy"]) == pytest.approx(other["entropy"], rel=1e-4)


def test_a_parquet_file_without_pyarrow_is_one_line(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refuses("pip install pyarrow"):
        predict_file(model, arrays(tmp_path / "a.npz", x=X.numpy()), tmp_path / "out.parquet")


def test_the_command_writes_the_table_and_prints_the_scores(finished_run, command, tmp_path):
    data = arrays(tmp_path / "a.npz", x=X.numpy(), y=Y.numpy())
    arguments = ("predict", str(finished_run()), data, "--to", "out.csv", "--device", "cpu")
    code, out, err = command(*arguments, "--scores")
    assert (code, err) == (0, [])
    assert out.startswith("accuracy ")
    assert len(rows_of(Path("out.csv"))) == len(X)
    code, out, err = command(*arguments, "--task", "7")
    assert (code, out, len(err)) == (1, "", 1)


def test_inputs_for_which_a_network_gives_no_numbers_are_refused(model, tmp_path):
    with data_fails("x", "too large"):
        model.predict(np.full((2, 64), 1e30), task=0)
    data = arrays(tmp_path / "large.npz", x=np.full((2, 64), 1e30))
    with data_fails(data, "too large"):
        predict_file(model, data, tmp_path / "table.csv")
    assert not (tmp_path / "table.csv").exists()


def test_arrays_of_the_other_byte_order_are_read(model, tmp_path):
    tables = []
    for order in "<>":
        data = arrays(tmp_path / "x.npz", x=X.numpy().astype(f"{order}f4"))
        predict_file(model, data, tmp_path / "table.csv")
        tables.append((tmp_path / "table.csv").read_bytes())
    assert tables[0] == tables[1]


@pytest.mark.parametrize("text", ["1_0", "\uff11"])
def test_a_cell_that_only_python_takes_as_a_number_is_refused(text, model, tmp_path):
    file = tmp_path / "x.csv"
    cells = ["0"] * 63 + [text]
    file.write_text(",".join(f"p{i}" for i in range(64)) + "\n" + ",".join(cells) + "\n", "utf-8")
    with data_fails(file, "row 2", "'p63'"):
        predict_file(model, str(file), tmp_path / "table.csv")
