import math
import tomllib
from pathlib import Path

import pytest
from tiny_sweeps import DIGITS, FILE, plans_of, table_of

from vcl_radial.errors import UserError
from vcl_radial.runs import catalogue
from vcl_radial.sweeps.plans import plans, read
from vcl_radial.sweeps.specification import parsed
from vcl_radial.sweeps.study import Study
from vcl_radial.tracks.continual.track import Continual


def refused(**changes) -> str:
    with pytest.raises(UserError) as error:
        plans_of(**changes)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metod": ["naive"]}, "unknown key 'metod'; the nearest known one is 'method'"),
        ({"kind": "bayes"}, "kind = 'bayes'"),
        ({"method": "radial"}, "unknown method 'radial'; the nearest is"),
        ({"benchmark": "split-digit"}, "unknown benchmark 'split-digit'; the nearest is"),
        ({"benchmark": 5}, "benchmark = 5"),
        ({"benchmark": [DIGITS, 5]}, "benchmark[1] = 5"),
        ({"benchmark": "nowhere.toml"}, "nowhere.toml: there is no such file"),
        ({"objective": "avg_accuracy"}, "'average_accuracy' (there are average_accuracy,"),
        ({"search__epoch": [1]}, "unknown key 'epoch'; the nearest known one is 'epochs'"),
        ({"fixed__epoch": 1}, "unknown key 'epoch'"),
        ({"search": {}}, "search = {}: give at least 1"),
        ({"search__epochs": 3}, "a key with one value goes under [fixed]"),
        ({"search__grouping": []}, "search.grouping.choices = []: give at least 1"),
        ({"search__grouping": ["unit", "unit"]}, "search.grouping: the choice 'unit' is there tw"),
        ({"search__grouping": ["unit", "units"]}, "grouping = 'units'"),
        (
            {"search__kl_weight": {"low": 1.0, "hihg": 2.0}},
            "nearest known one is 'search.kl_weight.high'",
        ),
        ({"search__kl_weight": {"low": 1.0}}, "the key 'search.kl_weight.high' is missing"),
        ({"search__kl_weight": {"low": 2.0, "high": 1.0}}, "search.kl_weight: low = 2.0 must"),
        (
            {"search__kl_weight": {"low": 0.0, "high": 1.0, "log": True}},
            "search.kl_weight: low = 0.0 must be above 0 where log",
        ),
        ({"search__kl_weight": {"low": -1.0, "high": 1.0}}, "kl_weight = -1.0"),
        (
            {"search__kl_weight": {"low": 1e-4, "high": math.nan}},
            "search.kl_weight.high = nan: must be a finite number",
        ),
        ({"search__kl_weight": {"low": "a", "high": 1.0}}, "low = 'a': must be a finite number"),
        ({"search__kl_weight": [[[1.0]]]}, "search.kl_weight.choices[0] = [[1.0]]: "),
        ({"search__batch_size": {"low": 1.0, "high": 9.0}}, "batch_size = 1.0"),
        ({"search__epochs": [1, 2]}, "is under [fixed] and under [search]"),
        ({"search__method": ["naive"]}, "write method = [...] at the top"),
        ({"kind": "grid"}, "a grid needs a list of choices"),
        (
            {
                "kind": "grid",
                "trials": None,
                "search": {
                    f"options.{name}": [*range(1, 200)] for name in ("a", "b", "c", "d", "e")
                },
            },
            "a grid of more than 100000 configurations",
        ),
        ({"trials": None}, "needs an end"),
        ({"trials": 0}, "trials = 0"),
        ({"hours": -1.0}, "hours = -1.0"),
        ({"seeds": 0}, "seeds = 0"),
        ({"pruning": {"quantil": 0.3}}, "nearest known one is 'pruning.quantile'"),
        ({"method": ["naive", "naive"]}, "is there twice"),
        ({"fixed__stream": {"validation": 0.0}}, "needs stream.validation above 0"),
        (
            {"resplit": True, "fixed__stream": {"split_seed": 2}},
            "resplit sets stream.split_seed to each seed; leave one of them out",
        ),
        (
            {
                "resplit": True,
                "benchmark": "retinopathy-synthetic",
                "method": "naive",
                "fixed": {"channels": 1},
            },
            "resplit: in retinopathy other validation data change the test data too; leave it out",
        ),
        (
            {"resplit": True, "per_seed": True},
            "resplit and per_seed: both give each seed its data; keep one",
        ),
        (
            {"per_seed": True, "search__stream.tasks": [2, 5]},
            "search.stream.tasks: per seed, search only keys of the recipe",
        ),
        ({"fixed__stream": {"task": 2}}, "the nearest known one is 'stream.tasks'"),
    ],
)
def test_a_mistake_gets_one_line_that_names_the_file_and_the_key(changes, words) -> None:
    message = refused(**changes)
    assert message.startswith("tiny.toml: ")
    assert words in message


@pytest.mark.parametrize("key", ["evaluate_on", "fixed__evaluate_on"])
def test_a_sweep_on_test_data_is_refused(key: str) -> None:
    assert "evaluate_on = 'test'" in refused(**{key: "test"})
    assert "validation data only" in refused(**{key: "test"})


def test_the_data_to_score_on_cannot_be_searched() -> None:
    assert "validation data only" in refused(search__evaluate_on=["test", "validation"])


def test_whatever_a_benchmark_says_every_run_is_scored_on_validation_data(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    text = catalogue.load("benchmark", DIGITS).path.read_text()
    mine.write_text(f'evaluate_on = "test"\n{text}')
    for benchmark in (DIGITS, str(mine)):
        (plan,) = plans_of(benchmark=benchmark)
        assert plan.base.evaluate_on == "validation"
        assert plan.run({"learning_rate": 0.1}, 3).evaluate_on == "validation"
        smuggled = plan.run({"learning_rate": 0.1, "evaluate_on": "test"}, 3)
        assert smuggled.evaluate_on == "validation"


def test_a_run_of_a_configuration_is_the_base_with_its_values() -> None:
    (plan,) = plans_of(method="lwf", search__options={"strength": [1.0, 2.0]})
    run = plan.run({"learning_rate": 0.25, "options.strength": 2.0}, 7)
    assert (run.seed, run.recipe.learning_rate, run.recipe.hidden) == (7, 0.25, [8])
    assert run.recipe.options["strength"] == 2.0
    assert run.stream.tasks == 2


def test_each_benchmark_is_searched_with_each_method() -> None:
    read_plans = plans_of(method=["naive", "joint"], benchmark=[DIGITS, "split-digits-single-head"])
    assert [plan.label for plan in read_plans] == [
        f"{benchmark}/{method}"
        for benchmark in (DIGITS, "split-digits-single-head")
        for method in ("naive", "joint")
    ]


def test_runs_without_a_score_before_their_end_cannot_be_given_up(monkeypatch) -> None:
    assert plans_of(pruning={"after": 2})
    monkeypatch.setattr(Continual, "has_scores_between", False)
    assert "pruning: runs of continual have no score before their end" in refused(pruning={})


def test_a_condition_names_a_key_that_there_is() -> None:
    what = {"choices": ["unit"], "when": {"posteriors": "radial"}}
    message = refused(search__grouping=what)
    assert "unknown key 'posteriors'; the nearest known one is 'posterior'" in message


def test_a_condition_that_holds_nowhere_is_refused() -> None:
    what = {"choices": ["unit"], "when": {"posterior": "radail"}}
    message = refused(search__grouping=what)
    assert "search.grouping: its `when` holds in no trial" in message


def test_conditions_in_a_circle_are_refused() -> None:
    message = refused(
        search__kl_weight={"choices": [1.0], "when": {"prior_scale": 1.0}},
        search__prior_scale={"choices": [1.0], "when": {"kl_weight": 1.0}},
    )
    assert "depends on itself" in message


def test_trials_of_the_command_line_take_the_place_of_the_files(tmp_path: Path) -> None:
    import tomli_w

    path = tmp_path / "mine.toml"
    path.write_text(tomli_w.dumps(table_of()))
    assert [plan.trials for plan in read(str(path))] == [3]
    assert [plan.trials for plan in read(str(path), 9)] == [9]


def test_sweeps_of_the_confirmatory_experiment_differ_in_nothing_but_the_method() -> None:
    names = [name for name in catalogue.names("sweep") if name.startswith("confirm-")]
    searched: dict[tuple[str, str], set[str]] = {}
    spaces: dict[str, list[dict[str, object]]] = {}
    for name in names:
        for plan in read(name):
            sweep = plan.sweep
            assert (sweep.kind, sweep.trials, sweep.seed, sweep.seeds) == ("tpe", 12, 0, 1)
            assert (sweep.objective, sweep.pruning) == ("average_accuracy", None)
            assert plan.base.stream.trained_tasks == 2
            assert plan.base.evaluate_on == "validation"
            whole = name.endswith("-untempered")
            assert ("kl_weight" in sweep.search) != whole
            assert not whole or plan.base.recipe.kl_weight == 1
            searched.setdefault((plan.benchmark, "whole" if whole else "tempered"), set()).add(
                plan.method
            )
            common = {key: sweep.search[key] for key in ("epochs", "learning_rate")}
            recipe = plan.base.recipe
            spaces.setdefault(plan.benchmark, []).append(
                {**common, "hidden": recipe.hidden, "batch_size": recipe.batch_size}
            )
    assert all(space == of_one[0] for of_one in spaces.values() for space in of_one)
    assert len(spaces) == 4
    assert {len(methods) for (_, kl), methods in searched.items() if kl == "tempered"} == {10}
    assert {len(methods) for (_, kl), methods in searched.items() if kl == "whole"} == {5}


def test_shipped_sweeps_are_valid_and_found_by_name() -> None:
    shipped = sorted((catalogue.folder("benchmark") / "sweeps").glob("*.toml"))
    assert shipped
    for path in shipped:
        assert read(path.stem)
        assert tomllib.loads(path.read_text())["description"]
    with pytest.raises(UserError, match="the nearest is 'tune-radial'"):
        read("tune-radia")


@pytest.mark.parametrize("which", ["", "-single-head", "-second"])
def test_the_two_tunings_differ_in_the_method_and_its_grouping_alone(which: str) -> None:
    radial, gaussian = (parsed(_table(f"tune-{n}{which}"), FILE) for n in ("radial", "gaussian"))
    same = {"description", "method", "search"}
    assert radial.model_dump(exclude=same) == gaussian.model_dump(exclude=same)
    assert radial.search.keys() - gaussian.search.keys() == {"grouping"}
    assert all(radial.search[key] == what for key, what in gaussian.search.items())
    assert len(plans("x", radial, FILE)) == 1


PAPERS_STEPS = {"sgd": {1e-2, 1e-3, 1e-4}, "amsgrad": {1e-3, 1e-4, 1e-5}}
"""Farquhar, Osborne and Gal 2020, Appendix D.1."""


def _configurations(name: str) -> list[list[dict]]:
    """The drawn ones of each method of a shipped sweep, of its last benchmark."""
    drawn = []
    for plan in read(name)[-2:]:
        study = Study(plan)
        drawn.append([study.ask().parameters for _ in range(plan.trials or 0)])
    return drawn


@pytest.mark.parametrize("name", ["fig4-retinopathy", "fig4-matched-noise", "fig4-robustness"])
def test_configurations_of_fig_4_have_the_steps_of_their_optimiser(name: str) -> None:
    radial, gaussian = _configurations(name)
    assert radial == gaussian
    assert len(radial) == 86
    for optimizer, steps in PAPERS_STEPS.items():
        of_one = [c for c in radial if c["optimizer"] == optimizer]
        assert {c["learning_rate"] for c in of_one} == steps
        if name != "fig4-robustness":
            decays = {c.get("learning_rate_decay") for c in of_one}
            assert decays == ({1.0, 0.98, 0.96} if optimizer == "sgd" else {None})


def test_matched_noise_alone_tells_two_sweeps_of_fig_4_apart() -> None:
    (one, _), (matched, _) = map(_configurations, ("fig4-retinopathy", "fig4-matched-noise"))
    scales = {math.log1p(math.exp(c.pop("initial_rho"))) for c in one}
    noises = {c.pop("initial_noise") for c in matched}
    assert sorted(noises) == pytest.approx(sorted(scales), rel=1e-3)
    assert one == matched


def _table(name: str) -> dict:
    return catalogue.load("sweep", name).table


def test_files_that_a_sweep_names_are_sought_beside_its_own_and_then_here(tmp_path, monkeypatch):
    folder = tmp_path / "sweeps"
    folder.mkdir()
    method = 'strategy = "naive"\nposterior = "none"\nepochs = {}\n'
    (folder / "both.toml").write_text(method.format(3))
    (tmp_path / "both.toml").write_text(method.format(4))
    (tmp_path / "here.toml").write_text(method.format(5))
    (folder / "mine.toml").write_text('[stream]\ndataset = "digits"\n')
    sweep = 'kind = "grid"\nbenchmark = "mine.toml"\nmethod = ["both.toml", "here.toml"]\n'
    (folder / "sweep.toml").write_text(sweep + "search.batch_size = [8]\n")
    monkeypatch.chdir(tmp_path)
    for name in ("sweeps/sweep.toml", str(folder / "sweep.toml")):
        assert [plan.base.recipe.epochs for plan in read(name)] == [3, 5]
