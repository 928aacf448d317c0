import json
import math

import optuna
import pytest
from made_up import made_up
from tiny_sweeps import plans_of

from vcl_radial.errors import UserError
from vcl_radial.sweeps.results import read_results, study_of
from vcl_radial.sweeps.samplers import sampler
from vcl_radial.sweeps.space import encoded


def drawn(plan, count: int) -> list[dict]:
    study = optuna.create_study()
    configurations = []
    for number in range(count):
        study.sampler = sampler(plan, number)
        trial = study.ask()
        parameters = plan.space.draw(trial)
        assert trial.params == encoded(parameters)
        study.tell(trial, 0.5)
        configurations.append(parameters)
    return configurations


SEARCH = {
    "learning_rate": {"low": 1e-4, "high": 1e-1, "log": True},
    "kl_weight": {"low": 0.25, "high": 0.75},
    "batch_size": {"low": 2, "high": 5},
    "hidden": [[8], [8, 8]],
    "grouping": {"choices": ["layer", "unit"], "when": {"posterior": "radial"}},
    "posterior": ["radial", "gaussian"],
}


@pytest.fixture(params=["random", "tpe"])
def plan(request):
    fixed = {"epochs": 1, "stream": {"tasks": 2}}
    return plans_of(kind=request.param, method="radial-vcl", fixed=fixed, search=SEARCH)[0]


def test_values_are_of_their_kind_and_within_their_range(plan) -> None:
    for parameters in drawn(plan, 30):
        assert 1e-4 <= parameters["learning_rate"] <= 1e-1
        assert 0.25 <= parameters["kl_weight"] <= 0.75
        assert type(parameters["batch_size"]) is int
        assert 2 <= parameters["batch_size"] <= 5
        assert parameters["hidden"] in ([8], [8, 8])
        assert ("grouping" in parameters) == (parameters["posterior"] == "radial")
        run = plan.run(parameters, 0)
        assert all(getattr(run.recipe, key) == value for key, value in parameters.items())


def test_a_log_range_is_even_in_the_logarithm() -> None:
    plan = plans_of()[0]
    logs = [math.log10(parameters["learning_rate"]) for parameters in drawn(plan, 400)]
    mean = sum(logs) / len(logs)
    # Uniform on [-4, -1]: mean -2.5, standard error (3 / sqrt(12)) / 20 = 0.043.
    assert abs(mean + 2.5) < 4 * 0.043


def test_same_seed_same_configurations_and_another_seed_others() -> None:
    first, again = (drawn(plans_of(seed=1)[0], 5) for _ in range(2))
    assert first == again != drawn(plans_of(seed=2)[0], 5)


def test_methods_are_tried_with_the_same_random_configurations() -> None:
    fixed = {"epochs": 1, "stream": {"tasks": 2}}
    search = {key: SEARCH[key] for key in ("learning_rate", "grouping", "kl_weight")}
    radial, gaussian = plans_of(method=["radial-vcl", "gaussian-vcl"], fixed=fixed, search=search)
    for one, other in zip(drawn(radial, 5), drawn(gaussian, 5), strict=True):
        assert "grouping" in one
        assert "grouping" not in other
        assert {k: v for k, v in one.items() if k != "grouping"} == other


def test_a_grid_is_all_combinations_once_and_conditions_thin_it_out() -> None:
    search = {
        "grouping": {"choices": ["layer", "unit"], "when": {"posterior": "radial"}},
        "posterior": ["radial", "gaussian"],
        "batch_size": [2, 3],
    }
    (plan,) = plans_of(
        kind="grid", trials=None, method="radial-vcl", fixed={"epochs": 1}, search=search
    )
    expected = [("radial", "layer"), ("radial", "unit"), ("gaussian", None)]
    assert plan.trials == 6
    configurations = [
        (p["posterior"], p.get("grouping"), p["batch_size"]) for p in drawn(plan, plan.trials)
    ]
    assert len(configurations) == len(set(configurations)) == 6
    assert set(configurations) == {(*pair, size) for pair in expected for size in (2, 3)}


def test_examples_have_every_value_of_every_key_where_it_is_searched() -> None:
    search = {
        "grouping": {"choices": ["layer", "unit"], "when": {"posterior": "radial"}},
        "posterior": ["radial", "gaussian"],
        "learning_rate": {"low": 1e-3, "high": 1e-1, "log": True},
        "batch_size": [2, 3, 4],
    }
    (plan,) = plans_of(method="radial-vcl", fixed={"epochs": 1}, search=search)
    examples = plan.space.examples
    assert len(examples) == len({json.dumps(example) for example in examples}) == 6
    for key, values in (
        ("posterior", {"radial", "gaussian"}),
        ("learning_rate", {1e-3, 1e-1}),
        ("batch_size", {2, 3, 4}),
    ):
        assert {example[key] for example in examples} == values
    of_radial = [example for example in examples if "grouping" in example]
    assert {example["posterior"] for example in of_radial} == {"radial"}
    assert {example["grouping"] for example in of_radial} == {"layer", "unit"}


def test_an_option_that_a_condition_brings_is_checked_before_any_run() -> None:
    search = {
        "options.temperature": {"choices": [1.0], "when": {"batch_size": 3}},
        "batch_size": [2, 3],
    }
    with pytest.raises(UserError, match="'temperature'"):
        plans_of(method="l2", fixed={"epochs": 1}, search=search)


def test_a_condition_may_name_the_method_the_stream_or_several_values() -> None:
    search = {
        "kl_weight": {"choices": [0.5], "when": {"method": "joint"}},
        "learning_rate": {"choices": [0.5], "when": {"stream.heads": ["multi", "single"]}},
        "batch_size": {"choices": [4], "when": {"stream.tasks": 2, "method": "naive"}},
    }
    naive, joint = plans_of(kind="grid", trials=None, method=["naive", "joint"], search=search)
    assert naive.grid == ({"learning_rate": 0.5, "batch_size": 4},)
    assert joint.grid == ({"learning_rate": 0.5, "kl_weight": 0.5},)


STEPS = {
    "optimizer": ["adam", "sgd"],
    "learning_rate": [
        {"choices": [1e-2, 1e-3, 1e-4], "when": {"optimizer": "sgd"}},
        {"choices": [1e-3, 1e-5], "when": {"optimizer": "adam"}},
    ],
}


@pytest.mark.parametrize("kind", ["random", "tpe"])
def test_a_key_has_other_choices_for_other_values_of_another_key(kind) -> None:
    (plan,) = plans_of(kind=kind, fixed={"epochs": 1}, search=STEPS)
    study, pairs = optuna.create_study(), []
    for number in range(60):
        study.sampler = sampler(plan, number)
        trial = study.ask()
        pairs.append(tuple(plan.space.draw(trial).values()))
        study.tell(trial, 0.5)
    steps = {"sgd": {1e-2, 1e-3, 1e-4}, "adam": {1e-3, 1e-5}}
    assert set(pairs) == {(name, step) for name in steps for step in steps[name]}


def test_a_grid_has_the_choices_of_each_case() -> None:
    (plan,) = plans_of(kind="grid", trials=None, fixed={"epochs": 1}, search=STEPS)
    drawn = [tuple(parameters.values()) for parameters in drawn_of_grid(plan)]
    sgd, adam = [1e-2, 1e-3, 1e-4], [1e-3, 1e-5]
    assert drawn == [("adam", step) for step in adam] + [("sgd", step) for step in sgd]


def drawn_of_grid(plan) -> list[dict]:
    """What trials take from the list, each as in the list itself."""
    study = optuna.create_study(sampler=sampler(plan, 0))
    taken = [plan.space.draw(study.ask()) for _ in plan.grid]
    assert taken == list(plan.grid)
    return taken


def test_what_was_drawn_from_the_cases_is_read_back_and_counted(tmp_path) -> None:
    fixed = {"epochs": 1, "hidden": [4], "stream": {"tasks": 2}}
    (study,), _ = made_up(tmp_path, trials=5, fixed=fixed, search=STEPS)
    results = read_results(tmp_path / "tiny")
    (one,) = results.searched
    for trial in one.trials:
        assert trial.parameters == study.trials[trial.number].parameters
    assert [t.params for t in study_of(one, results.keys, "maximize").trials] == [
        t.parameters for t in study.trials
    ]


def test_choices_of_several_cases_need_conditions() -> None:
    search = {**STEPS, "learning_rate": [{"choices": [1e-2]}, STEPS["learning_rate"][1]]}
    with pytest.raises(UserError, match=r"search\.learning_rate.*when.* is missing"):
        plans_of(fixed={"epochs": 1}, search=search)
