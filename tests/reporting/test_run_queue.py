"""The queue carries out what is left, loses nothing that is done, and says what it knows."""

import gzip
import math
import signal
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from reports.central import cells, run_queue
from reports.papers.catalogue import figures
from vcl_radial.runs import catalogue, environment, planning, runner
from vcl_radial.runs.attempt import RunOutcome

PAGE = Path(__file__).parents[2] / "reports" / "central"
TOY = """
[A]
title = "a start"
evaluate_on = "test"
layers = true

[[A.cells]]
benchmarks = ["split-digits-multi-head"]
methods = ["radial-vcl", "naive"]
seeds = [1, 2]
fixed = { epochs = 1, hidden = [8], eval_samples = 2 }

[B]
title = "weights"
evaluate_on = ["validation", "test"]

[[B.cells]]
benchmarks = ["split-digits-single-head"]
methods = ["radial-vcl"]
seeds = [1]
fixed = { epochs = 1, hidden = [8], eval_samples = 2 }
grid = { sigma = [0.0498], kl_weight = [0.1, 1.0] }
"""
SEARCH = """
[S]
title = "search"
evaluate_on = "validation"

[[S.cells]]
benchmarks = ["split-digits-multi-head"]
methods = ["naive"]
seeds = [0, 1]
searches = 2
trials = 3
fixed = { "stream.first_tasks" = 2, resplit = true, hidden = [8] }
search = { epochs = [1, 2], learning_rate = { low = 1e-4, high = 1e-2 } }

[T]
title = "searched"
evaluate_on = "test"

[[T.cells]]
best_of = "S"
seeds = [5]
"""
PHOTOGRAPHS = """
[P]
title = "photographs"
evaluate_on = "validation"

[[P.cells]]
benchmarks = ["retinopathy-synthetic"]
methods = ["naive"]
seeds = [0]
fixed = { epochs = 1, channels = 2, "data.size" = 16, "data.patients" = 40 }
grid.learning_rate = [1e-3, 1e-2]

[Q]
title = "chosen"
evaluate_on = "test"

[[Q.cells]]
best_of = "P"
score = "validation_auc"
seeds = [3]
fixed = { epochs = 2 }
"""
FIGURES = """
[F]
title = "figures"
evaluate_on = "none"

[[F.cells]]
benchmarks = ["papers"]
methods = ["half-cauchy"]
seeds = [1]
"""


@pytest.fixture
def queue(monkeypatch):
    monkeypatch.setattr(environment, "loaded", lambda: "0123456789ab")
    return run_queue


@pytest.fixture
def toy(tmp_path):
    def write(text):
        path = tmp_path / "toy.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def call(queue, toy, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments, text=TOY):
        return queue.main([*arguments, str(tmp_path / "results"), "--queue", str(toy(text))])

    return run


def table(tmp_path, name):
    return pd.read_csv(tmp_path / "results" / name)


@pytest.mark.slow
def test_all_cells_are_run_in_order_and_once(call, tmp_path, capsys):
    assert call("run") == 0
    a, b = table(tmp_path, "A-a-start.csv.gz"), table(tmp_path, "B-weights.csv.gz")
    assert len(a.groupby(["method", "seed"])) == 4
    assert len(b.groupby(["settings", "evaluate_on"])) == 4
    of = a[(a.method == "radial-vcl") & (a.seed == 1)].set_index("metric")
    assert len(of.loc["accuracy"]) == 15  # a matrix below its diagonal
    final = of.loc["accuracy"][of.loc["accuracy"].after == 5].value
    assert float(of.value["average_accuracy"]) == pytest.approx(final.mean(), rel=1e-5)
    assert {"forgetting", "learning_accuracy", "average_nll", "cpu_seconds"} <= set(of.index)
    sigma = of.loc["start_scale"].set_index("task").value
    noise = of.loc["start_noise"].set_index("task").value
    assert noise["body.0"] == pytest.approx(sigma["body.0"] / math.sqrt(520), rel=1e-4)
    assert len(of.loc["layer_units_at_rest"]) == 10
    assert set(a.commit) == {"0123456789ab"}
    before = (tmp_path / "results" / "A-a-start.csv.gz").read_bytes()
    capsys.readouterr()
    assert call("run") == 0
    assert (tmp_path / "results" / "A-a-start.csv.gz").read_bytes() == before
    assert "to do" not in capsys.readouterr().out
    assert call("status") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-5:-1] for line in lines[1:]] == [
        ["4", "4", f"{900 * _hours(a):.1f}", f"{_hours(a):.2f}"],
        ["4", "4", f"{900 * _hours(b):.1f}", f"{_hours(b):.2f}"],
    ]


def _hours(rows):
    return rows[rows.metric == "seconds"].value.sum() / 3600


def test_sigma_is_the_scale_that_a_layer_starts_with(call, tmp_path):
    call("run", "--one-each")
    b = table(tmp_path, "B-weights.csv.gz")
    assert len(b.groupby(["settings", "evaluate_on"])) == 1
    assert b[b.metric == "start_scale"].value.tolist() == pytest.approx([0.0498] * 2, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["ctrl-c", "sigterm"])
def test_a_stop_loses_the_cell_at_work_alone(call, tmp_path, monkeypatch, by, capsys):
    perform, calls = runner.perform, []

    def stopped(*arguments, **settings):
        calls.append(arguments)
        if len(calls) == 3:
            if by == "ctrl-c":
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGTERM)
        return perform(*arguments, **settings)

    monkeypatch.setattr(runner, "perform", stopped)
    assert call("run") == 130
    assert capsys.readouterr().err.splitlines()[-1].startswith("run_queue: ")
    assert len(table(tmp_path, "A-a-start.csv.gz").groupby(["method", "seed"])) == 2
    assert call("run") == 0
    assert len(calls) == 3 + 6


def test_the_same_cells_give_the_same_file_but_for_their_times(call, tmp_path, queue):
    files = []
    for _ in range(2):
        call("run", "--one-each")
        path = tmp_path / "results" / "A-a-start.csv.gz"
        rows = gzip.decompress(path.read_bytes()).decode().splitlines()
        files.append([row for row in rows if "seconds" not in row])
        assert path.read_bytes()[4:8] == bytes(4)  # no time
        path.unlink()
    assert files[0] == files[1]


def test_a_block_stays_at_its_commit(call, tmp_path, monkeypatch, capsys):
    call("run", "--one-each")
    monkeypatch.setattr(environment, "loaded", lambda: "fedcba987654")
    capsys.readouterr()
    assert call("run") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert all(name in line for name in ("A-a-start.csv.gz", "0123456789ab", "fedcba987654"))
    assert call("run", "--new-commit") == 0
    assert set(table(tmp_path, "A-a-start.csv.gz").commit) == {"0123456789ab", "fedcba987654"}
    monkeypatch.setattr(environment, "loaded", lambda: "000000000000")
    assert call("run") == 0  # whole blocks are left as they are


def test_code_that_is_not_committed_is_refused(call, monkeypatch, capsys):
    monkeypatch.setattr(environment, "loaded", lambda: "0123456789ab-dirty")
    assert call("run") == 1
    assert "0123456789ab-dirty" in capsys.readouterr().err


def test_a_run_that_diverges_is_a_row(call, tmp_path):
    text = TOY.replace("epochs = 1,", "epochs = 1, learning_rate = 1e30,")
    assert call("run", "--one-each", text=text) == 0
    a = table(tmp_path, "A-a-start.csv.gz")
    assert a[a.method == "radial-vcl"].metric.tolist() == ["cpu_seconds", "diverged", "seconds"]


def test_a_run_that_fails_ends_the_queue_with_a_line(call, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        runner, "perform", lambda runs, *_: [RunOutcome(run, "failed", "no space") for run in runs]
    )
    assert call("run") == 1
    assert "no space" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_cell_that_does_not_fit_into_the_hours_is_not_begun(call, tmp_path, queue, monkeypatch):
    assert call("run", "--hours", "0") == 0
    assert not (tmp_path / "results").exists()
    call("run", "--one-each")
    path = tmp_path / "toy.toml"
    seconds = queue.estimates(queue.read(tmp_path / "results", queue.blocks_of(path)), path)
    assert call("run", "--hours", "1e-9") == 0
    assert len(table(tmp_path, "A-a-start.csv.gz").groupby(["method", "seed"])) == 2
    cell = queue.Cell("A", "split-digits-multi-head", "ewc", "test", 1, {})
    assert seconds(cell) > 0  # as the others of the benchmark
    assert seconds(queue.Cell("A", "elsewhere", "ewc", "test", 1, {})) is None


def test_lanes_take_the_seeds_of_one_method_and_setting_together(call, tmp_path, monkeypatch):
    perform, sizes = runner.perform, []
    monkeypatch.setattr(
        runner, "perform", lambda runs, *more: sizes.append(len(runs)) or perform(runs, *more)
    )
    assert call("run", text=TOY.replace("layers = true", "lanes = 8")) == 0
    assert sizes == [2, 2, *[1] * 4]
    assert len(table(tmp_path, "A-a-start.csv.gz").groupby(["method", "seed"])) == 4


@pytest.mark.slow
def test_the_best_point_of_every_search_is_run_on_the_whole_stream(call, tmp_path, capsys):
    call("status", text=SEARCH)
    assert capsys.readouterr().out.splitlines()[-1].split()[2:4] == ["0", "2"]  # one of each search
    assert call("run", text=SEARCH) == 0  # the searches, and what they have chosen
    s, t = table(tmp_path, "S-search.csv.gz"), table(tmp_path, "T-searched.csv.gz")
    assert len(s.groupby(["settings", "seed"])) == 12
    assert s.after.max() == 2
    assert t.after.max() == 5
    scores = s[s.metric == "average_accuracy"].groupby("settings").value.mean()
    for number in (0, 1):
        of = scores[scores.index.str.contains(f"search={number}")]
        shorter = of.idxmax().replace(" resplit=true", "").replace(" stream.first_tasks=2", "")
        assert shorter in set(t.settings)
    assert len(set(t.settings)) == 2


def test_the_points_of_a_search_are_those_of_a_sobol_sequence():
    space = {"grouping": ["layer", "unit"], "rate": {"low": 1e-3, "high": 1e1}}
    points = cells.sobol(space, 24, 3)
    assert points == cells.sobol(space, 32, 3)[:24]
    assert points != cells.sobol(space, 24, 4)
    assert sum(point["grouping"] == "unit" for point in points) == 12
    decades = [math.floor(math.log10(point["rate"])) for point in cells.sobol(space, 32, 3)]
    assert sorted(decades) == [*[-3] * 8, *[-2] * 8, *[-1] * 8, *[0] * 8]


@pytest.mark.slow
def test_runs_on_photographs_are_chosen_by_validation_photographs(call, tmp_path):
    assert call("run", text=PHOTOGRAPHS) == 0
    p, q = table(tmp_path, "P-photographs.csv.gz"), table(tmp_path, "Q-chosen.csv.gz")
    assert set(p[p.metric == "auc"].task) == {"validation"}
    scores = p[p.metric == "validation_auc"].set_index("settings").value
    (chosen,) = set(q.settings)
    assert chosen == scores.idxmax().replace("epochs=1", "epochs=2")
    of = q.set_index(["metric", "after"]).value
    assert of["validation_auc"].item() == pytest.approx(of["epoch_validation_auc", 2])
    tested = q[(q.task == "test") & (q.after == 1)]
    assert {"auc", "auc_30_by_entropy", "nll", "ece"} <= set(tested.metric)


def test_the_curves_of_a_figure_are_rows(call, tmp_path, queue, monkeypatch, capsys):
    monkeypatch.delenv("VCL_RADIAL_DATA", raising=False)
    assert call("run", text=FIGURES) == 1
    assert "VCL_RADIAL_DATA" in capsys.readouterr().err
    monkeypatch.setenv("VCL_RADIAL_DATA", str(tmp_path))
    assert call("run", text=FIGURES) == 0
    rows = table(tmp_path, "F-figures.csv.gz")
    curves = queue.compute("half-cauchy", queue.Setting(seed=1)).curves
    for curve in curves:
        of = rows[(rows.metric == curve.panel) & (rows.task == curve.name)]
        of = of.assign(x=of.after.astype(float)).sort_values("x")
        assert of.x.tolist() == pytest.approx(sorted(map(float, curve.x)))
        assert sorted(of.value) == pytest.approx(sorted(curve.y), rel=1e-5)


def test_cells_that_nobody_has_run_have_the_times_of_the_cost_table(call, tmp_path, capsys):
    rows = ["block,benchmark,method,seconds", "A,split-digits-multi-head,radial-vcl,18"]
    (tmp_path / "cost.csv").write_text("\n".join(rows) + "\n")
    call("status")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[3:] == ["0", "4", "18.0", "0.00", f"{4 * 18 / 3600:.2f}"]
    assert lines[2].split()[2:4] == ["0", "4"]
    assert "4" in lines[2].split("0.00")[-1]  # cells without a time


def test_blocks_can_be_run_by_name(call, tmp_path, capsys):
    assert call("run", "--one-each", "--block", "B") == 0
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["B-weights.csv.gz"]
    with pytest.raises(SystemExit):
        call("run", "--block", "Z")
    assert "--block Z" in capsys.readouterr().err


@pytest.mark.slow
def test_every_cell_of_the_page_can_be_run(monkeypatch):
    """Benchmarks, methods, keys and values are there, whatever a block's runs are."""
    path = PAGE / "queue.toml"
    assert tomllib.loads(path.read_text())
    for block in cells.blocks_of(path):
        of_block = cells.cells_of(block, path, {}, to_count=True)
        names = {(cell.benchmark, cell.method, cell.name[3]): cell for cell in of_block}
        for cell in names.values():
            if cell.benchmark == cells.PAPERS:
                assert cell.method in figures()
                continue
            track = catalogue.track_of(catalogue.load("benchmark", cell.benchmark))
            for run in planning.plan(cell.benchmark, [cell.method], [cell.seed], cell.keys):
                track.check_runs([run])
        assert len({cell.name for cell in of_block}) == len(of_block)
