"""`import vcl_radial as vr`: its names, and what `run` and `load_results` give."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from failing import refuses
from matplotlib.figure import Figure
from torch import nn

import vcl_radial as vr
from vcl_radial.cli import main

ROOT = Path(__file__).parents[1]
DIGITS = "split-digits-multi-head"
TINY = {"epochs": 1, "hidden": [8], "eval_samples": 2, "stream.tasks": 2}


class Pull(vr.Method):
    """Pull the weights to 0."""

    posteriors = frozenset({"none"})

    def penalty(self):
        return sum((p**2).sum() for p in self.network.parameters())


def run(*methods, **more):
    return vr.run(DIGITS, methods, **{"settings": TINY, "jobs": 1, "device": "cpu"} | more)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two methods with two seeds each."""
    return run("naive", "radial-vcl", seeds=2, out=tmp_path_factory.mktemp("runs"))


def in_another_process(folder, code):
    """What a script prints that Python runs in a folder."""
    (folder / "script.py").write_text(code)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    answer = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.parametrize("name", vr.__all__)
def test_a_public_name_is_listed_and_documented(name):
    assert name in dir(vr)
    if name != "__version__":
        assert getattr(vr, name).__doc__


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="'runs_of'"):
        vr.runs_of  # noqa: B018


@pytest.mark.processes
def test_the_package_is_imported_without_pytorch_and_avalanche(tmp_path):
    code = "import sys, vcl_radial; print(*({'torch', 'avalanche', 'pandas'} & {*sys.modules}))"
    assert in_another_process(tmp_path, code) == "\n"


@pytest.mark.processes
def test_a_script_without_a_main_block_runs_in_workers_once(tmp_path):
    code = f"""
import vcl_radial as vr
print("started")
results = vr.run("{DIGITS}", "naive", seeds=2, settings={TINY}, jobs=2, device="cpu")
print(len(results.table["seed"].unique()), "seeds")
"""
    printed = in_another_process(tmp_path, code)
    assert printed.count("started") == 1
    assert printed.endswith("2 seeds\n")


@pytest.mark.slow
def test_a_type_checker_knows_the_names(tmp_path):
    file = tmp_path / "typed.py"
    file.write_text(
        "import vcl_radial as vr\n"
        "results: vr.Results = vr.run('a', [vr.VCL, 'ewc'], seeds=3)\n"
        "network = vr.MLP(64, 2, posterior='radial')\n"
        "vr.run(1)\n"
    )
    api = pytest.importorskip("mypy.api")
    printed, _, _ = api.run(["--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(file)])
    errors = [line for line in printed.splitlines() if line.startswith(str(file))]
    assert len(errors) == 1
    assert 'typed.py:4: error: Argument 1 to "run"' in errors[0]


def test_the_table_has_a_row_for_every_score(results):
    table = results.table
    columns = ["run", "benchmark", "method", "seed", "after", "task", "part", "metric", "value"]
    assert list(table.columns) == columns
    assert len(results.runs) == 4
    cells = table[table["metric"] == "accuracy"].groupby(["method", "seed"]).size()
    assert cells.to_dict() == {(m, s): 3 for m in ("naive", "radial-vcl") for s in (0, 1)}


def test_the_summary_is_the_mean_of_the_table(results):
    final = results.table.query("metric == 'accuracy' and after == 2")
    means = final.groupby("method")["value"].mean()
    summary = results.summary().set_index("method")
    np.testing.assert_allclose(summary["average_accuracy"], means[summary.index])
    assert (summary["seeds"] == 2).all()


def test_figures_and_a_latex_table_come_from_the_results(results):
    assert isinstance(results.heatmap("naive"), Figure)
    assert isinstance(results.curves(), Figure)
    assert isinstance(results.figure("final-model"), Figure)
    assert r"naive & 2 & " in results.to_latex()
    assert "<td" in results._repr_html_()
    assert "radial-vcl" in repr(results)


def test_what_the_results_do_not_have_is_named_with_what_they_have(results):
    with refuses("'naiv'", "nearest is 'naive'"):
        results.heatmap("naiv")
    with refuses("'heat'", "final-model"):
        results.figure("heat")
    with refuses("'x'", f"nearest is '{DIGITS}'"):
        results.of("x")


def test_a_run_that_diverges_is_listed_beside_those_that_do_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wild.toml").write_text(
        'strategy = "naive"\nposterior = "none"\noptimizer = "sgd"\nlearning_rate = 1e30\n'
    )
    made = run("wild.toml", "naive")
    for listed in (made, vr.load_results("runs")):
        assert listed.methods == ["naive"]
        (failure,) = listed.failures.to_dict("records")
        assert (failure["method"], failure["seed"]) == ("wild", 0)
        assert failure["outcome"] == "diverged"
        assert failure["reason"].startswith("the loss became nan in epoch 1")
    assert run("wild.toml").table.empty


def test_results_of_several_benchmarks_are_told_apart(tmp_path, results, capsys):
    run("naive", out=tmp_path)
    vr.run("split-digits-single-head", "naive", settings=TINY, jobs=1, device="cpu", out=tmp_path)
    both = vr.load_results(tmp_path)
    assert both.benchmarks == [DIGITS, "split-digits-single-head"]
    assert set(both.table["benchmark"]) == set(both.benchmarks)
    assert list(both.summary()["benchmark"]) == both.benchmarks
    with refuses("choose one with", DIGITS):
        both.curves()
    assert isinstance(both.of(DIGITS).heatmap("naive"), Figure)
    assert list(both.of(DIGITS).table) == list(both.table)


def test_a_class_is_run_as_a_method_under_its_name(tmp_path):
    before = torch.get_rng_state()
    made = run(Pull, "naive", out=tmp_path)
    assert made.methods == ["Pull", "naive"]
    assert torch.equal(torch.get_rng_state(), before)
    assert not run(Pull, out=tmp_path).table.empty
    spec = next(tmp_path.glob(f"{DIGITS}/Pull/*/spec.toml")).read_text()
    assert f'strategy = "{__name__}:Pull"' in spec
    assert "\ncode = " in spec


def test_a_class_inside_a_function_is_refused():
    class Inside(Pull):
        pass

    with refuses("Inside"):
        run(Inside)


@pytest.mark.processes
def test_a_class_of_a_script_runs_there_and_anew_once_it_is_edited(tmp_path):
    code = f"""
import vcl_radial as vr
class Pull(vr.Method):
    posteriors = frozenset({{"none"}})
    def penalty(self):
        return sum((p**2).sum() for p in self.network.parameters())
results = vr.run("{DIGITS}", Pull, settings={TINY}, device="cpu")
print(results.methods)
"""
    assert in_another_process(tmp_path, code).endswith("['Pull']\n")
    assert "were finished before" in in_another_process(tmp_path, code)
    assert "1 run to do" in in_another_process(tmp_path, code.replace("p**2", "2 * p**2"))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"seeds": 0}, ["seeds = 0"]),
        ({"seeds": [1, -1]}, ["seeds = [1, -1]"]),
        ({"data_dir": "nowhere"}, ["data_dir = 'nowhere'"]),
        ({"settings": {"epochs": 0}}, ["epochs = 0"]),
    ],
)
def test_a_wrong_argument_is_refused_before_any_run(arguments, named, tmp_path):
    with refuses(*named):
        run("naive", out=tmp_path, **arguments)
    assert not list(tmp_path.iterdir())


def test_seeds_may_be_listed(tmp_path):
    assert set(run("naive", seeds=[3, 7], out=tmp_path).table["seed"]) == {3, 7}


def test_a_benchmark_gives_its_tasks():
    stream = vr.benchmark(DIGITS, {"stream.tasks": 2})
    assert len(stream) == 2
    first, second = stream
    (x, y), (test_x, test_y) = second.train, second.test
    assert (second.head, second.classes) == (1, (0, 1, 2, 3, 4))
    assert first.name == "0, 1, 2, 3, 4"
    assert x.shape == (len(y), 64)
    assert test_x.shape == (len(test_y), 64)
    assert set(y.tolist()) == {0, 1, 2, 3, 4}


def test_a_benchmark_without_tasks_is_refused_by_name():
    with refuses("diabetes", "track regression"):
        vr.benchmark("diabetes")


def test_the_lists_describe_what_is_shipped(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for listed in (vr.list_benchmarks(), vr.list_methods(), vr.list_methods("retinopathy")):
        for name, description in listed.items():
            assert f"{name}  " in printed
            assert description in printed
    assert "diabetes" in vr.list_benchmarks("regression")
    assert "diabetes" not in vr.list_benchmarks("continual")


def test_vcl_is_made_in_one_line_with_the_weight_of_its_kl():
    method = vr.VCL(vr.MLP(64, 2, multi_head=True, posterior="radial"), kl_weight=0.5)
    assert method.kl_weight == 0.5


def test_a_network_gets_a_posterior_and_a_prior():
    network = vr.to_bayesian(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), "radial")
    assert network(torch.zeros(5, 3)).shape == (5, 2)
    mean, scale = torch.zeros(2, 10), torch.full((2, 10), 0.1)
    posterior = vr.posteriors.Radial(mean, scale)
    assert torch.allclose(
        posterior.kl(vr.posteriors.Radial(mean, scale)), torch.zeros(2), atol=1e-5
    )


@pytest.mark.slow
def test_a_class_is_checked_by_itself():
    verdicts = vr.check(Pull)
    assert "learns" in {verdict.name for verdict in verdicts}
    assert repr(verdicts).count("\n") == len(verdicts) - 1
    assert all(verdict.outcome == "fault" for verdict in verdicts.faults)


def test_a_report_of_runs_is_written_beside_them(tmp_path):
    run("naive", out=tmp_path)
    assert (vr.report(tmp_path) / "index.html").is_file()
    assert callable(vr.report)  # no module has taken its name


def test_tables_of_no_run_are_empty():
    empty = vr.Results([])
    assert empty.table.empty
    assert empty.summary().empty
    assert isinstance(empty.failures, pd.DataFrame)
    with refuses("no run"):
        empty.curves()
