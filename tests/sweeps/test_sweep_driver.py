from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up import MadeUp, from_its_settings, made_up
from tiny_sweeps import trials_bytes

from vcl_radial.errors import UserError
from vcl_radial.runs.attempt import RunOutcome
from vcl_radial.runs.folder import DIVERGED, FAILED
from vcl_radial.runs.lock import AlreadyRunning, held
from vcl_radial.sweeps import driver
from vcl_radial.sweeps.folder import SweepFolder

SEARCH = {"learning_rate": {"low": 1e-4, "high": 1e-1, "log": True}, "batch_size": [16, 32]}
RANDOM = {"trials": 5, "seeds": 2}
GRID = {
    "kind": "grid",
    "trials": None,
    "seeds": 2,
    "search": {"batch_size": [8, 16, 32], "learning_rate": [0.1, 0.2]},
}
# Two trials more than TPE draws at random.
TPE = {"kind": "tpe", "trials": 12, "at_once": 3, "search": SEARCH}
PRUNED = {"pruning": {"after": 2}, "trials": 8, "at_once": 3, "seeds": 2}
KINDS = {"random": RANDOM, "grid": GRID, "tpe": TPE, "pruned": PRUNED}


class Stopped(MadeUp):
    """Ctrl-C after so many runs."""

    after = 1

    def wait(self):
        if len(self.done) == self.after:
            raise KeyboardInterrupt
        return super().wait()


def stopped(out: Path, after: int, **changes) -> None:
    kind = type("StoppedThen", (Stopped,), {"after": after})
    with pytest.raises(KeyboardInterrupt):
        made_up(out, kind, **changes)


class Diverging(MadeUp):
    """Some runs diverge, and leave what `attempt` leaves of them."""

    def end(self, run, job):
        if run.digest()[0] not in "ef":
            return super().end(run, job)
        self.done.append(run)
        folder = SweepFolder(self.context.out.parent).run(run)
        folder.start()
        (folder.path / DIVERGED).touch()
        (folder.path / FAILED).write_text("the loss is nan\n")
        return RunOutcome(run, "diverged", "the loss is nan")


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_the_table_depends_neither_on_the_number_of_jobs_nor_on_which_is_quicker(
    tmp_path: Path, changes: dict
) -> None:
    made_up(tmp_path / "alone", **changes)
    made_up(tmp_path / "together", jobs=5, order=1, **changes)
    assert trials_bytes(tmp_path / "together") == trials_bytes(tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_a_sweep_that_was_stopped_ends_as_one_that_was_not_and_no_run_is_done_twice(
    tmp_path: Path, changes: dict
) -> None:
    made_up(tmp_path / "undisturbed", **changes)
    for number, after in enumerate((1, 0, 3)):
        stopped(tmp_path / "disturbed", after, jobs=2, order=number, **changes)
    _, last = made_up(tmp_path / "disturbed", jobs=3, **changes)
    assert trials_bytes(tmp_path / "disturbed") == trials_bytes(tmp_path / "undisturbed")
    finished = len(list((tmp_path / "disturbed").glob("**/done")))
    given_up = len(list((tmp_path / "disturbed").glob("**/checkpoint.pt")))
    assert len(last.done) == finished + given_up - 4


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_the_run_folders_alone_hold_all_that_a_sweep_knows(tmp_path: Path, changes: dict) -> None:
    def accuracy(run, task):
        return float("inf") if run.digest() < "2" else from_its_settings(run, task)

    with np.errstate(invalid="ignore"):
        made_up(tmp_path, Diverging, accuracy=accuracy, **changes)
        before = trials_bytes(tmp_path)
        for file in (tmp_path / "tiny").glob("*"):
            if file.is_file():
                file.unlink()
        _, executor = made_up(tmp_path, jobs=3, accuracy=accuracy, **changes)
    assert trials_bytes(tmp_path) == before
    assert executor.done == []


def test_finished_runs_are_kept_and_more_trials_may_be_asked_for(tmp_path: Path) -> None:
    _, first = made_up(tmp_path, trials=2)
    table = trials_bytes(tmp_path)
    _, again = made_up(tmp_path, trials=2)
    assert (len(first.done), again.done) == (2, [])
    assert trials_bytes(tmp_path) == table
    _, more = made_up(tmp_path, trials=3)
    assert len(more.done) == 1
    assert trials_bytes(tmp_path).startswith(table)


def test_a_sweep_may_get_further_methods_and_ends_as_if_it_had_had_them_from_the_start(
    tmp_path: Path,
) -> None:
    made_up(tmp_path / "later", method=["naive"], trials=3)
    _, more = made_up(tmp_path / "later", method=["naive", "joint"], trials=3)
    made_up(tmp_path / "at once", method=["naive", "joint"], trials=3)
    assert {run.method for run in more.done} == {"joint"}
    assert trials_bytes(tmp_path / "later") == trials_bytes(tmp_path / "at once")


def test_a_run_folder_that_came_to_harm_is_done_again_and_the_others_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (study,), _ = made_up(tmp_path, trials=3)
    before = trials_bytes(tmp_path)
    runs = [study.trials[number].runs[0] for number in range(3)]
    folders = [SweepFolder(tmp_path / "tiny").run(run) for run in runs]
    path = folders[1].path / "accuracy.csv"
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    for file in folders[2].path.iterdir():
        file.unlink()
    _, executor = made_up(tmp_path, trials=3)
    assert executor.done == [runs[1], runs[2]]
    assert f"{path} was altered after the run" in capsys.readouterr().out
    assert path.read_bytes() == content
    assert trials_bytes(tmp_path) == before


def test_tpe_looks_where_scores_were_high(tmp_path: Path) -> None:
    def accuracy(run, task):
        return 100.0 - 10.0 * abs(np.log10(run.recipe.learning_rate) + 2.5)

    changes = {"kind": "tpe", "trials": 30, "at_once": 2}
    (study,), _ = made_up(tmp_path, accuracy=accuracy, **changes)
    scores = [study.results[number].score for number in range(30)]
    assert np.mean(scores[15:]) > np.mean(scores[:10]) + 2.0


def test_a_trial_is_given_up_exactly_if_it_is_below_the_quantile_of_those_it_knows(
    tmp_path: Path,
) -> None:
    changes = {"pruning": {"quantile": 0.5, "after": 3}, "trials": 20, "at_once": 4, "seeds": 2}
    (study,), executor = made_up(tmp_path, jobs=3, **changes)
    came_to: list[list[float]] = []  # the accuracies of the first seed of each trial
    for number, trial in enumerate(study.trials):
        mine, hopeless = [], False
        for task in (1, 2):
            known = [a[task - 1] for a in came_to[: max(0, number - 3)] if len(a) >= task]
            mine.append(from_its_settings(trial.runs[0], task))
            if len(known) >= 3 and mine[-1] < np.median(known):
                hopeless = True
                break
        came_to.append(mine)
        assert (study.results[number].outcome == "pruned") == hopeless
        assert (trial.runs[1] in executor.done) == (not hopeless)
    assert {r.outcome for r in study.results.values()} == {"pruned", "finished"}


def test_two_trials_of_one_configuration_share_its_runs(tmp_path: Path) -> None:
    changes = {"trials": 4, "search": {"learning_rate": [1e-3]}}
    (study,), executor = made_up(tmp_path, jobs=4, **changes)
    assert len(executor.done) == 1
    assert len({result.score for result in study.results.values()}) == 1
    assert len(study.results) == 4


def test_studies_take_turns(tmp_path: Path) -> None:
    _, executor = made_up(tmp_path, method=["naive", "joint"], trials=3)
    assert [run.method for run in executor.done] == ["naive", "joint"] * 3


class Deadly(MadeUp):
    """The process of every run dies so many times."""

    times = 2

    def end(self, run, job):
        if self.done.count(run) < self.times:
            self.done.append(run)
            return RunOutcome(run, "lost", "its process died")
        return super().end(run, job)


def test_a_run_whose_process_died_is_run_again(tmp_path: Path) -> None:
    made_up(tmp_path / "well", **RANDOM)
    _, executor = made_up(tmp_path / "ill", Deadly, jobs=2, **RANDOM)
    assert len(executor.done) == 3 * 10
    assert trials_bytes(tmp_path / "ill") == trials_bytes(tmp_path / "well")


def test_a_run_that_kills_every_process_is_given_up_and_tried_again_next_time(
    tmp_path: Path,
) -> None:
    kind = type("Fatal", (Deadly,), {"times": 99})
    (study,), executor = made_up(tmp_path, kind, trials=1)
    assert len(executor.done) == driver.MOST_DEATHS
    assert study.results[0].outcome == "failed"
    assert "its process died, 3 times" in study.results[0].words
    (study,), _ = made_up(tmp_path, trials=1)
    assert study.results[0].outcome == "finished"


class Vanishing(MadeUp):
    """The first run's folder is deleted as it ends."""

    def end(self, run, job):
        ended = super().end(run, job)
        if len(self.done) == 1:
            for file in SweepFolder(self.context.out.parent).run(run).path.iterdir():
                file.unlink()
        return ended


def test_a_run_folder_deleted_meanwhile_is_made_again(tmp_path: Path) -> None:
    made_up(tmp_path / "well", **RANDOM)
    _, executor = made_up(tmp_path / "ill", Vanishing, **RANDOM)
    assert len(executor.done) == 11
    assert trials_bytes(tmp_path / "ill") == trials_bytes(tmp_path / "well")


def test_the_lowest_seed_that_did_not_finish_says_why(tmp_path: Path) -> None:
    class DivergingSeeds(MadeUp):
        def end(self, run, job):
            if run.seed in (1, 2):
                return RunOutcome(run, "diverged", f"of seed {run.seed}")
            return super().end(run, job)

    for jobs in (1, 4):
        made_up(tmp_path / str(jobs), DivergingSeeds, jobs=jobs, trials=2, seeds=4)
        table = pd.read_csv(tmp_path / str(jobs) / "tiny" / "trials.csv")
        assert list(table.words) == ["seed 1: of seed 1"] * 2
        assert list(table.outcome) == ["diverged"] * 2
        assert table.score.isna().all()


def test_a_score_that_is_not_finite_counts_as_diverged(tmp_path: Path) -> None:
    def accuracy(run, task):
        return float("inf") if run.seed == 1 else 90.0

    with np.errstate(invalid="ignore"):
        (study,), _ = made_up(tmp_path, accuracy=accuracy, trials=1, seeds=2)
    assert study.results[0].outcome == "diverged"
    assert study.best() is None


def test_a_score_that_the_method_does_not_have_is_a_fault(tmp_path: Path) -> None:
    (study,), _ = made_up(tmp_path, trials=1, objective="average_nll")
    assert study.results[0].outcome == "failed"
    assert "average_nll is not defined" in study.results[0].words


def test_lower_is_better_for_forgetting(tmp_path: Path) -> None:
    (study,), _ = made_up(tmp_path, trials=6, objective="forgetting")
    scores = [result.score for result in study.results.values()]
    assert study.results[study.best()].score == min(scores) < max(scores)


def test_a_run_scored_on_test_data_is_never_taken(tmp_path: Path) -> None:
    class Smuggler(MadeUp):
        def end(self, run, job):
            ended = super().end(run, job)
            folder = SweepFolder(self.context.out.parent).run(run)
            files = {f.name: f.read_text() for f in folder.path.iterdir() if f.name != "done"}
            files["spec.toml"] = files["spec.toml"].replace('"validation"', '"test"')
            folder.finish(files)
            return ended

    (study,), executor = made_up(tmp_path, Smuggler, trials=1)
    assert study.results[0].outcome == "failed"
    assert "is another run" in study.results[0].words
    assert len(executor.done) == driver.MOST_DEATHS


def test_what_blocks_one_run_stops_the_sweep(tmp_path: Path) -> None:
    class Full(MadeUp):
        def end(self, run, job):
            return RunOutcome(run, "blocked", "no space left")

    with pytest.raises(UserError, match="no space left"):
        made_up(tmp_path, Full)
    (study,), _ = made_up(tmp_path)
    assert [result.outcome for result in study.results.values()] == ["finished"] * 3


def test_a_second_sweep_in_the_folder_is_told_so(tmp_path: Path) -> None:
    with held(tmp_path / "tiny"), pytest.raises(AlreadyRunning):
        made_up(tmp_path)
    made_up(tmp_path, trials=1)


def test_another_search_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    made_up(tmp_path, trials=1)
    with pytest.raises(UserError, match="another seed"):
        made_up(tmp_path, trials=1, seed=5)
    with pytest.raises(UserError, match=r"another search\.learning_rate"):
        made_up(tmp_path, trials=1, search__learning_rate=[0.1])
    with pytest.raises(UserError, match=r"another fixed\.epochs"):
        made_up(tmp_path, trials=1, fixed__epochs=2)


def test_a_recipe_that_was_edited_meanwhile_is_refused(tmp_path: Path) -> None:
    method = tmp_path / "mine.toml"
    method.write_text('strategy = "naive"\nposterior = "none"\noptimizer = "adam"\n')
    made_up(tmp_path, trials=1, method=str(method))
    method.write_text('strategy = "naive"\nposterior = "none"\noptimizer = "sgd"\n')
    with pytest.raises(UserError, match=r"sweep\.toml: "):
        made_up(tmp_path, trials=1, method=str(method))


def test_a_damaged_description_is_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    made_up(tmp_path)
    before = trials_bytes(tmp_path)
    path = tmp_path / "tiny" / "sweep.toml"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"seeds = 1", b"seeds = 7"))
    made_up(tmp_path)
    assert f"{path}: damaged" in capsys.readouterr().out
    assert trials_bytes(tmp_path) == before


def test_the_time_that_was_spent_counts_over_all_sittings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(driver.time, "monotonic", lambda: now[0])

    class Slow(MadeUp):
        def end(self, run, job):
            now[0] += 1000.0
            return super().end(run, job)

    (study,), _ = made_up(tmp_path, Slow, trials=2, hours=1.0)
    assert len(study.results) == 2
    (study,), _ = made_up(tmp_path, Slow, trials=9, hours=1.0)
    assert len(study.results) == 4  # 4000 s are more than an hour; 3000 s were not
    table = trials_bytes(tmp_path)
    (study,), _ = made_up(tmp_path, Slow, trials=9, hours=1.0)
    assert len(study.results) == 4
    assert trials_bytes(tmp_path) == table


@pytest.mark.slow
def test_a_search_that_only_its_hours_end_stops_where_nothing_new_is_left(tmp_path: Path) -> None:
    search = {"batch_size": [8, 16], "learning_rate": [0.1, 0.2]}
    (study,), _ = made_up(tmp_path, search=search, trials=None, hours=1000.0)
    tried = {tuple(sorted(trial.parameters.items())) for trial in study.trials}
    assert len(tried) == 4
    assert len(study.trials) < 100


def test_lanes_and_pruning_do_not_go_together() -> None:
    from tiny_sweeps import swept

    with pytest.raises(UserError, match="lanes = 2"):
        swept(Path("nowhere"), lanes=2, **PRUNED)
