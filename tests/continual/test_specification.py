import tomllib

import pytest
import tomli_w
from failing import refuses
from tiny_runs import tiny_run

from vcl_radial.tracks.continual.settings import Recipe, Run


def test_the_default_recipe_is_the_papers_radial_one():
    recipe = Recipe()
    assert (recipe.strategy, recipe.posterior, recipe.grouping) == ("vcl", "radial", "layer")
    assert (recipe.optimizer, recipe.learning_rate) == ("amsgrad", 1e-3)
    assert (recipe.initial_rho, recipe.prior_scale) == (-6.0, 1.0)
    assert (recipe.epochs, recipe.batch_size, recipe.drop_last) == (20, 1024, True)
    assert recipe.hidden == [200] * 4


def test_a_spec_written_as_toml_and_read_back_is_the_same_run():
    run = tiny_run("radial-vcl", initial_noise=0.01, **{"stream.class_order": [*range(9, -1, -1)]})
    again = Run.model_validate(tomllib.loads(tomli_w.dumps(run.settings())))
    assert again == run
    assert again.digest() == run.digest()


def test_the_digest_is_that_of_all_settings_but_the_seed_and_the_name():
    run = tiny_run("radial-vcl")
    assert tiny_run("radial-vcl", seed=1).digest() == run.digest()
    assert run.model_copy(update={"method": "renamed"}).digest() == run.digest()
    others = [
        tiny_run("radial-vcl", epochs=2),
        tiny_run("radial-vcl", **{"stream.tasks": 2}),
        tiny_run("radial-vcl", **{"options.memory": 2}),
        tiny_run("radial-vcl", evaluate_on="validation"),
        tiny_run("radial-vcl", benchmark="split-digits-single-head"),
        run.model_copy(update={"code": "another"}),
    ]
    digests = {run.digest(), *(other.digest() for other in others)}
    assert len(digests) == len(others) + 1


def test_the_digest_does_not_depend_on_how_a_number_is_written():
    assert tiny_run(learning_rate=1).digest() == tiny_run(learning_rate=1.0).digest()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epochs", 0),
        ("epochs", 2.5),
        ("epochs", True),
        ("epochs", "many"),
        ("learning_rate", -1),
        ("learning_rate", 0),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("rho_learning_rate", 0),
        ("kl_weight", -0.1),
        ("initial_rho", float("nan")),
        ("initial_noise", 0),
        ("prior_scale", 0),
        ("posterior", "foo"),
        ("grouping", "weight"),
        ("optimizer", "lbfgs"),
        ("hidden", [0]),
        ("hidden", 100),
        ("batch_size", 0),
        ("drop_last", "yes"),
        ("train_samples", 0),
        ("eval_samples", 0),
        ("stream.validation", 1.5),
        ("stream.validation", -0.1),
        ("stream.tasks", 0),
        ("stream.heads", "two"),
        ("stream.kind", "rotated"),
        ("stream.dataset", "cifar"),
        ("stream.class_order", [0.5]),
        ("stream.class_order", "sed"),
        ("stream.class_order", 3),
        ("stream.statistics", "first"),
        ("stream.split_seed", -1),
        ("evaluate_on", "train"),
    ],
)
def test_an_impossible_value_is_named_with_its_key(key, value):
    element = "[0]" if isinstance(value, list) else ""
    with refuses(f"{key}{element} = "):
        tiny_run(**{key: value}).check()


def test_validation_data_cannot_be_evaluated_where_none_are_held_out():
    with refuses("stream.validation"):
        tiny_run(evaluate_on="validation", **{"stream.validation": 0})


def test_a_seed_must_be_one_that_generators_take():
    for seed in (-1, 2**31):
        with refuses("seed", seed):
            tiny_run(seed=seed)
