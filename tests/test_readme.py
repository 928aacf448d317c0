"""The README's code is what a newcomer runs first, so it is run here."""

import gzip
import re
import shutil
import sys
from pathlib import Path

import pytest

from vcl_radial.cli import main

README = Path(__file__).parents[1] / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def block(language, word):
    (found,) = [text for text in blocks(language) if word in text]
    return found


@pytest.fixture
def newcomers_folder(tmp_path, monkeypatch):
    """The folder at work, which is on no import path of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    return tmp_path


def test_the_method_of_the_readme_is_in_order_and_runs_beside_the_others(newcomers_folder, capsys):
    (newcomers_folder / "my_methods.py").write_text(block("python", "class L2"))
    (newcomers_folder / "my-l2.toml").write_text(block("toml", 'strategy = "my_methods:L2"'))
    lines = block("sh", "--method my-l2.toml").splitlines()
    check, run = (line.split("#")[0].split()[1:] for line in lines)
    assert main(check) == 0
    assert " 0 faults, 0 skipped" in capsys.readouterr().out
    quick = ["--jobs", "1", "--seeds", "1", "--set", "epochs=2", "eval_samples=2", "hidden=[16]"]
    assert main([*run, *quick]) == 0
    assert re.search(r"^my-l2 +1 ", capsys.readouterr().out, re.MULTILINE)
    namespace = {}
    exec(block("python", "def test_l2_conforms"), namespace)
    namespace["test_l2_conforms"]()
    sys.modules.pop("my_methods", None)


def test_the_posterior_of_the_readme_is_in_order_and_is_carried(newcomers_folder, capsys):
    (newcomers_folder / "my_posteriors.py").write_text(block("python", "class Laplace"))
    check, run = (line.split()[1:] for line in block("sh", "my_posteriors").splitlines())
    assert main(check) == 0
    said = capsys.readouterr().out
    assert re.search(r"^ok +posterior's KL: .* closed forms to Laplace$", said, re.MULTILINE)
    assert " 0 faults, " in said
    quick = ["epochs=2", "eval_samples=2", "hidden=[16]"]
    for number in (1, 2):
        assert main([*run, *quick, "--jobs", "1", "--seeds", "1"]) == 0
        shown = re.findall(
            r"^gaussian-vcl(?: .code=\w+.)? +1 ", capsys.readouterr().out, re.MULTILINE
        )
        assert len(shown) == number
        # Edited, it is another posterior, and another run.
        with Path("my_posteriors.py").open("a") as file:
            file.write("# edited\n")
        sys.modules.pop("my_posteriors")


def test_network_data_and_stream_of_the_readme_run_and_are_run_anew_when_edited(
    newcomers_folder, capsys
):
    (newcomers_folder / "my_own.py").write_text(block("python", "def convnet"))
    (newcomers_folder / "turned.toml").write_text(block("toml", "my_own:turned"))
    run, check = (line.split()[1:] for line in block("sh", "./turned.toml").splitlines())
    quick = ["--jobs", "1", "--seeds", "1", "--set", "epochs=1", "eval_samples=2"]
    assert main([*run, *quick]) == 0
    assert (
        len(re.findall(r"^(?:radial-vcl|gaussian-vcl|ewc) +1 ", capsys.readouterr().out, re.M)) == 3
    )
    assert main([*run, *quick]) == 0
    assert "all 3 runs were finished before" in capsys.readouterr().out
    with Path("my_own.py").open("a") as file:
        file.write("# edited\n")
    assert main([*run, *quick]) == 0
    assert "finished before" not in capsys.readouterr().out
    assert main([*check, "epochs=4"]) == 0
    assert " 0 faults, 0 skipped" in capsys.readouterr().out
    sys.modules.pop("my_own")


def test_the_resnet_of_the_readme_is_trained_on_photographs(newcomers_folder, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(newcomers_folder / "cache"))
    (newcomers_folder / "my_eyes.py").write_text(block("python", "def resnet"))
    (line,) = block("sh", "my_eyes").splitlines()
    quick = ["epochs=1", "eval_samples=2", "batch_size=40", "data.size=32", "data.patients=80"]
    assert main([*line.split()[1:], *quick, "--method", "mfvi"]) == 0
    assert "mfvi  seed 0 done in" in capsys.readouterr().out
    sys.modules.pop("my_eyes")


def test_what_the_readme_says_of_eq44_is_what_is_said():
    from vcl_radial.conformance import check_family
    from vcl_radial.posteriors import RadialEq44

    (fault,) = [str(v) for v in check_family(RadialEq44) if v.outcome == "fault"]
    assert fault in README.read_text()


def test_the_posteriors_of_the_readme_have_the_shapes_it_says(capsys):
    code = block("python", "import Gaussian, Radial")
    namespace = {}
    exec(code, namespace)
    assert namespace["posterior"].sample(5).shape == (5, 10, 785)
    divergence = namespace["posterior"].kl(namespace["prior"])
    assert divergence.shape == (10,)
    assert (divergence > 0).all()


def test_the_avalanche_example_of_the_readme_runs_on_split_fashion(
    tmp_path, monkeypatch, fashion_mnist_root
):
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for file in fashion_mnist_root.glob("*.gz"):
        with gzip.open(file) as packed, (raw / file.stem).open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    code = block("python", "SplitFMNIST(5")
    # One epoch on one of the five tasks shows that it runs.
    quick = (
        code.replace("SplitFMNIST(5,", f"SplitFMNIST(5, dataset_root={str(tmp_path)!r},")
        .replace("train_epochs=20", "train_epochs=1, eval_samples=2")
        .replace("benchmark.train_stream:", "benchmark.train_stream[:1]:")
        .replace("benchmark.test_stream)", "benchmark.test_stream[:1])")
        .replace("print(", "results = (")
    )
    assert quick.count("[:1]") == 2
    namespace = {}
    exec(quick, namespace)
    accuracy = namespace["results"]["Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp000"]
    assert accuracy > 0.9


@pytest.fixture
def fashion_mnist_root(real_data):
    return real_data / "FashionMNIST" / "raw"
