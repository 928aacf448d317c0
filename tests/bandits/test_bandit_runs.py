"""Games as runs of the track: what decides them, what is kept of them, and what a report shows."""

import gzip
from pathlib import Path

import pandas as pd
import pytest
from failing import refuses

from vcl_radial.cli import main
from vcl_radial.errors import DataError
from vcl_radial.metrics import METRICS, metric
from vcl_radial.reporting.figures.lines import mean_curves
from vcl_radial.reporting.scores import scores_table
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.finished import Spec
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.runs.track import FinishedRun, objectives
from vcl_radial.tracks.bandits.game import bandit_of
from vcl_radial.tracks.bandits.sections import draw, games_table, make_claims, make_table
from vcl_radial.tracks.bandits.track import Bandits

FEW = {"data.rounds": 41, "steps": 5}


def run_of(table="mushroom", method="badam", seed=0, **settings):
    (run,) = plan(f"bandit-{table}", [method], [seed], {**FEW, **settings})
    return run


def played(run, out: Path, data_dir: Path) -> pd.DataFrame:
    execute(Bandits(), run, RunContext(out, data_dir))
    return Bandits().read(RunFolder(out, run).path, {})["rewards"]


def command(out, data_dir, *more, rounds=41):
    line = [
        "run",
        "bandit-mushroom",
        "--out",
        str(out),
        "--data-dir",
        str(data_dir),
        "--jobs",
        "1",
    ]
    return [*line, "--set", f"data.rounds={rounds}", "steps=5", *more]


def test_the_seed_decides_the_game_whatever_was_drawn_before(data_dir, tmp_path):
    import torch

    first = played(run_of(seed=1), tmp_path / "a", data_dir)
    torch.manual_seed(123)
    pd.testing.assert_frame_equal(played(run_of(seed=1), tmp_path / "b", data_dir), first)
    other = played(run_of(seed=2), tmp_path / "c", data_dir)
    assert other["reward"].tolist() != first["reward"].tolist()


def test_the_cumulative_sums_grow_to_the_totals(data_dir, tmp_path):
    table = played(run_of("statlog", "uniform", **{"data.rounds": 120}), tmp_path, data_dir)
    assert table["round"].iloc[0] == 1
    assert table["round"].iloc[-1] == 120 == table["optimum"].iloc[-1]
    assert table["reward"].is_monotonic_increasing
    folder = RunFolder(tmp_path, run_of("statlog", "uniform", **{"data.rounds": 120}))
    relative = Bandits().score(folder, "relative_reward")
    assert relative == pytest.approx(100 - 100 * Bandits().score(folder, "regret") / 120)


def test_validation_games_are_on_rows_that_no_other_game_sees(data_dir):
    rows = {}
    for part in ("validation", "test"):
        keys = {"data.validation": 0.25, "evaluate_on": part, "data.rounds": None}
        bandits = [bandit_of(run_of("statlog", seed=seed, **keys), data_dir) for seed in (0, 1)]
        first, second = ({tuple(row) for row in b.contexts.tolist()} for b in bandits)
        assert first == second  # whatever the seed
        rows[part] = first
    assert not rows["validation"] & rows["test"]
    assert len(rows["validation"]) < len(rows["test"])


def test_more_rounds_than_rows_are_refused_before_any_game(data_dir, tmp_path, capsys):
    assert main(command(tmp_path, data_dir, "--method", "uniform", rounds=301)) == 1
    assert "data.rounds = 301: mushroom has 300 rows; lower it" in capsys.readouterr().err
    assert not (tmp_path / "bandit-mushroom").exists()


def test_a_weight_of_the_kl_changes_the_agents_that_have_one_and_no_other(data_dir, tmp_path):
    def rewards(method, weight):
        run = run_of(method=method, kl_weight=weight)
        return played(run, tmp_path / method / str(weight), data_dir)["reward"].tolist()

    assert rewards("gaussian-vcl", 1.0) != rewards("gaussian-vcl", 1e6)
    assert rewards("naive", 1.0) == rewards("naive", 1e6)


def test_a_method_of_the_image_streams_plays_by_the_defaults_of_the_track(data_dir, tmp_path):
    run = run_of(method="ewc")
    assert (run.recipe.strategy, run.recipe.learning_rate) == ("ewc", 0.1)
    assert len(played(run, tmp_path, data_dir)) == 41


OWN = """
from vcl_radial.methods.base import Method


class Lucky(Method):
    def penalty(self):
        return sum(weight.square().sum() for weight in self.parameters_in_use().values())
"""


def test_a_method_of_a_users_own_plays(data_dir, tmp_path, monkeypatch, capsys):
    (tmp_path / "lucky.py").write_text(OWN)
    (tmp_path / "mine.toml").write_text('strategy = "lucky:Lucky"\nposterior = "none"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    method = str(tmp_path / "mine.toml")
    assert main(command(tmp_path / "runs", data_dir, "--method", method)) == 0
    assert "mine" in capsys.readouterr().out


def test_a_method_that_makes_no_sense_is_one_line_before_any_game(data_dir, tmp_path, capsys):
    assert main(command(tmp_path / "runs", data_dir, "--method", "naive", "lwf")) == 1
    out, err = capsys.readouterr()
    assert err.startswith("vcl-radial: lwf: ")
    assert len(err.splitlines()) == 1
    assert "seed" not in out


def test_a_count_of_epochs_is_refused_by_its_name():
    with refuses("'epochs'", "'steps'"):
        run_of(epochs=3)


def test_games_on_another_file_are_others(data_dir, tmp_path):
    run = run_of()
    before = run.on_data(data_dir)
    path = data_dir / "bandits" / "mushroom.csv.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"p,f", b"e,f")))
    assert run.on_data(data_dir).digest() != before.digest()


def test_the_command_writes_the_paper_beside_ours(data_dir, tmp_path, capsys):
    out = tmp_path / "runs"
    line = command(out, data_dir, "--method", "badam", "naive", "uniform", "--seeds", "2")
    assert main(line) == 0
    path = data_dir / "bandits" / "mushroom.csv.gz"
    assert capsys.readouterr().err.count(f"vcl-radial: {path}: 300 rows\n") == 1
    page = (out / "report" / "bandit-mushroom" / "summary.md").read_text()
    assert "| badam | *0.74 ± 0.09* |" in page
    games = pd.read_csv(out / "report" / "bandit-mushroom" / "games.csv")
    assert len(games) == 6
    relative = 1 - games["regret"] / games["optimum"]
    assert games["relative"].tolist() == pytest.approx(relative.tolist())


@pytest.mark.parametrize("table", ["financial", "census"])
def test_a_set_that_the_paper_lacks_is_played_and_has_no_published_column(
    table, data_dir, tmp_path, capsys
):
    line = ["run", f"bandit-{table}", "--method", "naive", "uniform", "--out", str(tmp_path)]
    line += ["--data-dir", str(data_dir), "--jobs", "1"]
    assert main([*line, "--set", "data.rounds=60", "steps=5"]) == 0
    page = (tmp_path / "report" / f"bandit-{table}" / "summary.md").read_text()
    assert "| naive |" in page
    assert "published" not in page


def test_a_dry_run_prints_the_rounds_of_a_whole_game_and_plays_none_of_it(
    data_dir, tmp_path, capsys
):
    line = command(tmp_path / "runs", data_dir, "--method", "naive", "--dry-run", rounds=300)
    assert main(line) == 0
    assert "one run: 300 rounds; " in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_file_that_cannot_be_used_is_one_line_before_any_game(data_dir, tmp_path, capsys, harm):
    path = data_dir / "bandits" / "mushroom.csv.gz"
    whole = path.read_bytes()
    path.unlink()
    if harm == "damaged":
        path.write_bytes(whole[:200])
    assert main(command(tmp_path / "runs", data_dir, "--method", "naive")) == 1
    out, err = capsys.readouterr()
    assert err.startswith(f"vcl-radial: {path}: ")
    assert len(err.splitlines()) == 1
    assert "seed" not in out


def game(table, method, reward, optimum=1.0, seed=0):
    """A finished game with made-up sums."""
    spec = Spec(
        benchmark="b",
        method=method,
        seed=seed,
        recipe={"strategy": method},
        data={"table": table, "pulls": 3, "every": 20},
    )
    rewards = pd.DataFrame({"round": [1], "reward": [reward], "optimum": [optimum]})
    environment = {"seconds": None}
    return FinishedRun(Path(), Bandits(), spec, environment, {"rewards": rewards}, "b", method)


def games_of(runs):
    return games_table(scores_table(runs))


def test_claims_are_decided_by_pairs_of_games():
    def verdicts(games, **rewards):
        runs = [
            game("mushroom", method, reward + 0.01 * seed, seed=seed)
            for method, reward in rewards.items()
            for seed in range(games)
        ]
        return {str(claim.verdict) for claim in make_claims(games_of(runs), "mushroom")}

    published = {"badam": 0.74, "gaussian-vcl": 0.60, "vadam": 0.76, "naive": 0.64}
    turned = {"badam": 0.5, "gaussian-vcl": 0.6, "vadam": 0.4, "naive": 0.6}
    assert verdicts(8, **published) == {"reproduced"}
    assert verdicts(8, **turned) == {"not reproduced"}
    # Of three statements no six games have p < 0.05, whatever they earn: 3 x 2 / 2^6.
    assert verdicts(6, **published) == verdicts(6, **turned) == {"no evidence either way"}
    assert verdicts(8, **dict.fromkeys(published, 0.5)) == {"no evidence either way"}


def test_ours_stand_beside_the_published():
    games = [game("adult", "vadam", r, seed=seed) for seed, r in enumerate((0.2, 0.3))]
    table = make_table(games_of([*games, game("adult", "radial-vcl", 0.5)]), "adult")
    assert [[cell.text for cell in row[:4]] for row in table.body] == [
        ["vadam", "0.26 ± 0.02", "0.25 ± 0.07", "2"],
        ["radial-vcl", "–", "0.50", "1"],
    ]


def test_a_metric_is_one_function_and_one_line(monkeypatch):
    monkeypatch.setitem(METRICS, "average_reward", None)

    @metric("reward per round", 2, "higher", of="game")
    def average_reward(game):
        return game["reward"] / game["round"]

    table = games_of([game("mushroom", "naive", 0.5)])
    assert table["average_reward"].tolist() == [0.5]
    headings = [column.heading for column in make_table(table, "mushroom").heads]
    assert "reward per round" in headings
    assert objectives("game")["average_reward"].direction == "maximize"


def test_the_regret_of_a_uniform_agent_is_beyond_the_axis():
    runs = [game("mushroom", "naive", 0.5), game("mushroom", "uniform", -9.0)]
    scores = scores_table(runs)
    (axes,) = draw(mean_curves(scores[scores["metric"] == "regret"])).axes
    assert 0.5 < axes.get_ylim()[1] < 10


def test_where_nothing_can_be_earned_there_is_no_relative_reward_and_no_claim():
    games = [game("mushroom", method, 0.0, 0.0) for method in ("badam", "gaussian-vcl")]
    table = games_of(games)
    assert make_claims(table, "mushroom") == []
    assert make_table(table, "mushroom").body[0][2].text == "–"


def test_a_damaged_table_of_a_game_is_named(tmp_path):
    for text in ("", "round,reward\n1,2\n", "round,reward,optimum\n1,x,3\n"):
        (tmp_path / "rewards.csv").write_text(text)
        with refuses("rewards.csv", kind=DataError):
            Bandits().read(tmp_path, {})
