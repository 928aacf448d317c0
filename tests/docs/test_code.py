"""The code of the docs is what a newcomer runs first, so it is run here."""

import gzip
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from doc_pages import ROOT, block, write_files
from PIL import Image

from vcl_radial.cli import main
from vcl_radial.data.streams import load_dataset

DOCS = ROOT / "docs"
METHOD, POSTERIOR, STREAMS = (
    DOCS / f"own-{name}.md" for name in ("method", "posterior", "streams")
)
PYTHON, RETINOPATHY = DOCS / "python.md", DOCS / "retinopathy.md"
AFTER = DOCS / "after-training.md"
NEEDED = {".parquet": "pyarrow", ".onnx": "onnxscript"}
"""Packages that the files of a page need, by their endings."""
QUICK = ["--jobs", "1", "--seeds", "1", "--set", "epochs=1", "eval_samples=2"]


@pytest.fixture
def newcomers_folder(tmp_path, monkeypatch):
    """The folder at work, which is on no import path of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield tmp_path
    for name in ("my_methods", "my_posteriors", "my_own", "my_eyes"):
        sys.modules.pop(name, None)


def arguments(page, part):
    """The arguments of each `vcl-radial` line of the block that holds a text."""
    lines = block(page, "sh", part).splitlines()
    return [line.split("#")[0].split()[1:] for line in lines if line.startswith("vcl-radial")]


def run(code):
    names = {}
    exec(code, names)
    return names


@pytest.mark.usefixtures("newcomers_folder")
def test_the_python_of_the_readme_compares_methods_and_draws_a_heatmap():
    code = block(ROOT / "README.md", "python", "vr.run")
    assert code.count("seeds=3") == 1
    results = run(code.replace("seeds=3", 'seeds=1, jobs=1, settings={"epochs": 1}'))["results"]
    assert results.methods == ["radial-vcl", "ewc"]
    assert Path("heatmap.png").stat().st_size > 1000


@pytest.mark.slow
def test_the_method_of_the_docs_is_in_order_and_runs_beside_the_others(newcomers_folder, capsys):
    write_files(METHOD, newcomers_folder)
    run(block(METHOD, "python", "def test_l2_conforms"))["test_l2_conforms"]()
    compare, _ = arguments(METHOD, "--method my-l2.toml naive")
    assert main([*compare, *QUICK, "hidden=[16]"]) == 0
    assert re.search(r"^my-l2 +1 ", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.slow
def test_the_method_of_the_docs_has_the_fault_that_they_show_without_its_state(
    newcomers_folder, capsys
):
    write_files(METHOD, newcomers_folder)
    path = Path("my_methods.py")
    code = path.read_text()
    start, end = (code.index(f"    def {name}(") for name in ("state_dict", "load_state_dict"))
    path.write_text(code[:start] + code[end:])
    assert main(["check", "my-l2.toml"]) == 1
    faults = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAULT")]
    assert faults == block(METHOD, "", "FAULT").splitlines()


@pytest.mark.slow
def test_the_posterior_of_the_docs_is_in_order_and_is_carried(newcomers_folder, capsys):
    write_files(POSTERIOR, newcomers_folder)
    check, compare = arguments(POSTERIOR, "my_posteriors")
    assert main(check) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^ok +posterior's KL: .* closed forms to Laplace$", printed, re.MULTILINE)
    assert " 0 faults, " in printed
    for number in (1, 2):
        assert main([*compare, *QUICK[-2:], "hidden=[16]", *QUICK[:4]]) == 0
        printed = capsys.readouterr().out
        rows = re.findall(r"\(posterior: *$|\(posterior: Laplace", printed, re.MULTILINE)
        assert len(rows) == number
        # Edited, it is another posterior, and another run.
        with Path("my_posteriors.py").open("a") as file:
            file.write("# edited\n")
        sys.modules.pop("my_posteriors")


@pytest.mark.slow
def test_network_data_and_stream_of_the_docs_run_and_are_run_again_when_edited(
    newcomers_folder, capsys
):
    write_files(STREAMS, newcomers_folder)
    compare, _ = arguments(STREAMS, "./turned.toml")
    quick = [*QUICK, "stream.tasks=2", "batch_size=350"]
    assert main([*compare, *quick]) == 0
    printed = capsys.readouterr().out
    assert len(re.findall(r"^(?:radial-vcl|gaussian-vcl|ewc) +1 ", printed, re.MULTILINE)) == 3
    assert main([*compare, *quick]) == 0
    assert "all 3 runs were finished before" in capsys.readouterr().out
    with Path("my_own.py").open("a") as file:
        file.write("# edited\n")
    assert main(["run", "./turned.toml", "--method", "ewc", *quick]) == 0
    assert "finished before" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_resnet_of_the_docs_is_trained_on_photographs(newcomers_folder, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(newcomers_folder / "cache"))
    write_files(RETINOPATHY, newcomers_folder)
    ((*refer,),) = arguments(RETINOPATHY, "my_eyes")
    refer.remove("radial-vcl")  # one of the two will do
    quick = ["epochs=1", "eval_samples=2", "data.size=16", "data.patients=60"]
    assert main([*refer, *quick]) == 0
    assert "gaussian-vcl seed 0  done in" in capsys.readouterr().out


def test_the_fault_that_the_docs_quote_of_eq44_is_the_one_reported():
    from vcl_radial.conformance import check_family
    from vcl_radial.posteriors import RadialEq44

    (fault,) = [str(v) for v in check_family(RadialEq44) if v.outcome == "fault"]
    assert fault in POSTERIOR.read_text()


@pytest.mark.usefixtures("newcomers_folder")
def test_the_first_code_of_the_python_page_runs_and_draws_its_figures():
    code = block(PYTHON, "python", "results.summary()")
    assert code.count("seeds=3") == code.count('"epochs": 5') == 1
    quick = code.replace("seeds=3", "seeds=1, jobs=1").replace('"epochs": 5', '"epochs": 1')
    assert run(quick)["results"].methods == ["radial-vcl", "gaussian-vcl", "ewc"]
    assert all(Path(f"{name}.png").stat().st_size > 1000 for name in ("heatmap", "curves"))


def test_the_posteriors_of_the_docs_have_the_shapes_that_are_stated():
    names = run(block(PYTHON, "python", "import Gaussian, Radial"))
    assert names["posterior"].sample(5).shape == (5, 10, 785)
    divergence = names["posterior"].kl(names["prior"])
    assert divergence.shape == (10,)
    assert (divergence > 0).all()


def test_the_frozen_body_of_the_docs_stays_and_its_head_learns():
    torch.manual_seed(0)
    names = run(block(PYTHON, "python", "body.requires_grad_(False)"))
    assert (names["method"].predict(names["x"]).argmax(-1) == names["y"]).double().mean() > 0.9


@pytest.mark.drawn
def test_the_heatmap_of_the_readme_is_the_one_that_the_docs_draw(tmp_path, monkeypatch):
    (tmp_path / "reports").symlink_to(ROOT / "reports")
    monkeypatch.chdir(tmp_path)
    run(block(PYTHON, "python", "heatmap_sheet"))
    drawn, committed = (
        np.asarray(Image.open(folder / "split-fashion-start.png").convert("L"), dtype=float)
        for folder in (tmp_path, DOCS)
    )
    assert drawn.shape == committed.shape
    assert abs(drawn - committed).mean() < 1.0


@pytest.mark.usefixtures("newcomers_folder")
def test_the_run_of_the_docs_measures_forgetting_by_avalanche():
    code = block(DOCS / "avalanche.md", "python", "ReplayPlugin")
    table = run(code.replace('"radial-vcl",', '"radial-vcl", jobs=1,'))["table"]
    assert table.metric.str.startswith("StreamForgetting").sum() == 5


def test_the_avalanche_example_of_the_docs_runs_on_split_fashion(tmp_path, real_data):
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for file in (real_data / "FashionMNIST" / "raw").glob("*.gz"):
        with gzip.open(file) as packed, (raw / file.stem).open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    code = block(DOCS / "avalanche.md", "python", "SplitFMNIST(5")
    # One epoch on one of the five tasks shows that it runs.
    quick = (
        code.replace("SplitFMNIST(5,", f"SplitFMNIST(5, dataset_root={str(tmp_path)!r},")
        .replace("train_epochs=20", "train_epochs=1, eval_samples=2")
        .replace("benchmark.train_stream:", "benchmark.train_stream[:1]:")
        .replace("benchmark.test_stream)", "benchmark.test_stream[:1])")
        .replace("print(", "results = (")
    )
    assert quick.count("[:1]") == 2
    results = run(quick)["results"]
    assert results["Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp000"] > 0.9


@pytest.mark.slow
def test_the_page_after_training_keeps_looks_inside_predicts_and_exports(newcomers_folder, capsys):
    (train,) = arguments(AFTER, "--method radial-vcl --seeds 3")
    assert main([*train, "--jobs", "1", "--set", "epochs=1", "eval_samples=2", "hidden=[8]"]) == 0
    images = load_dataset("digits")
    np.savez("inputs.npz", x=images.test_x.numpy())
    for number, pixels in enumerate(images.test_x[:5].numpy()):
        Path("images").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(f"images/{number}.png")
    names = run(block(AFTER, "python", "model.infer"))
    assert names["outputs"].shape == (20 * 3, len(images.test_x), 2)
    assert names["correlations"].shape[1] == names["correlations"].shape[2]
    seed = next(Path("runs/split-digits-multi-head/radial-vcl").glob("seed-0-*"))
    for command in (
        *arguments(AFTER, "predict runs/split-digits"),
        *arguments(AFTER, "vcl-radial export"),
    ):
        words = [str(seed) if "seed-0" in word else word for word in command]
        missing = next((n for e, n in NEEDED.items() if any(w.endswith(e) for w in words)), None)
        if missing is None or find_spec(missing):
            assert main(words) == 0, words
    printed = capsys.readouterr().out
    assert "head inferred" in printed
    assert "## Limits" in printed
    run(block(AFTER, "python", "sort_values"))
