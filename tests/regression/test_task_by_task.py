"""Regression by any method: slice by slice, in plain PyTorch."""

import copy

import pytest
import torch
from failing import refuses
from regression_helpers import final_scores, finished, table_runs, toy

from vcl_radial.errors import Diverged
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.regression.settings import Recipe, Run

POINTS = {"posterior": "none", "steps": 40, "batch_size": 16, "eval_samples": 4}


def training(slices=2, seed=0, data=None, **recipe):
    """A run without lanes."""
    data = toy() if data is None else data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "is_lane", False)
        return table_runs(data, [seed], [Recipe(**recipe)], slices).lanes[0]


@pytest.mark.parametrize(
    ("name", "steps", "rate"),
    [("vcl", 250, 2e-2), ("badam", 600, 1e-2), ("laplace_linearised", 250, 2e-2)],
)
def test_a_method_task_by_task_scores_as_its_lanes_do(name, steps, rate):
    """Both draw batches and weights of their own: means over splits agree, within three errors."""
    data = toy(rows=120)
    recipe = {"strategy": name, "posterior": "gaussian" if name == "vcl" else "none"}
    recipe |= {"steps": steps, "learning_rate": rate}
    lanes = final_scores(data, range(4), [Recipe(**recipe)] * 4)
    gaps = []
    for split in range(4):
        alone = training(None, split, data, **recipe)
        assert [step.message for step in alone.steps()] == ["scored"]
        gaps.append([alone.after[0][metric] - lanes[split][metric] for metric in lanes[split]])
    gap = torch.tensor(gaps)
    assert (gap.mean(0).abs() < 3 * gap.std(0) / 2 + 1e-3).all()
    assert gap.mean(0)[1].abs() < 0.2 * lanes[0]["rmse"]


@pytest.mark.parametrize("slices", [1, 3])
def test_the_linear_model_alone_scores_as_its_lane_does(slices):
    data = toy(rows=120)
    recipe = {"strategy": "bayes_linear", **POINTS, "prior_scale": 0.5}
    (lane,) = finished(data, [1], [Recipe(**recipe)], slices)
    alone = training(slices, 1, data, **recipe)
    list(alone.steps())
    assert alone.after.keys() == lane.after.keys()
    for number, scores in alone.after.items():
        assert scores == pytest.approx(lane.after[number], rel=1e-9)


@pytest.mark.parametrize("posterior", ["gaussian", "radial"])
def test_a_lane_carries_as_many_bytes_as_a_method_task_by_task(posterior):
    recipe = {**POINTS, "strategy": "vcl", "posterior": posterior}
    lanes = finished(toy(), [0, 1], [Recipe(**recipe)] * 2, 2)
    of_lane, of_other = (lane.facts()["carried_bytes"] for lane in lanes)
    alone = training(2, **recipe)
    list(alone.steps())
    weights = sum(p.numel() for p in alone.learner.method.network.parameters())
    # Beside them N and the noise's Gamma distributions, before and after.
    assert alone.facts()["carried_bytes"] == of_lane == of_other == 4 * weights + 8 + 4 * 4
    at_once = training(1, **recipe)
    list(at_once.steps())
    assert at_once.facts()["carried_bytes"] is None


def test_the_linear_model_carries_its_posterior():
    """Of d inputs and a 1: precision, mean, shape and rate in float64."""
    data = toy(d=3)
    recipe = {"strategy": "bayes_linear", **POINTS}
    (lane,) = finished(data, [0], [Recipe(**recipe)], 2)
    of_lane = lane.facts()["carried_bytes"]
    assert of_lane == 8 * (4 * 4 + 4 + 2)
    alone = training(2, data=data, **recipe)
    list(alone.steps())
    # The noise of the likelihood, which the posterior has already, and that features are fitted.
    assert of_lane <= alone.facts()["carried_bytes"] <= of_lane + 8 + 4 * 4 + 1


@pytest.mark.parametrize("name", ["ewc", "badam", "vadam", "laplace_linearised", "replay"])
def test_a_sequence_goes_on_after_a_slice_with_the_same_numbers(name):
    whole = training(3, strategy=name, **POINTS)
    states = [(step.done, copy.deepcopy(whole.state_dict())) for step in whole.steps()]
    assert [done for done, _ in states] == [1, 2, 3]
    again = training(3, strategy=name, **POINTS)
    again.load_state_dict(states[0][1])
    list(again.steps())
    assert again.after == whole.after
    assert [*again.after] == [1, 2, 3]


@pytest.mark.parametrize("name", ["naive", "badam"])
def test_the_noise_ends_at_its_optimum_for_the_weights(name):
    """For point estimates: 1 / E tau is the mean square of the residuals, but for a weak prior.

    Where the posterior is read off at the end too: those of training alone are known before.
    """
    naive = training(1, strategy=name, noise_rate=1e-9, **POINTS)
    list(naive.steps())
    ((x, y, _),) = (task.points for task in naive.learner.source.tasks())
    naive.learner.method.network.train()
    residuals = naive.learner.method.network(x).squeeze(1) - y
    shape = 1 + len(y) / 2
    expected = len(y) / 2 * residuals.square().mean() / shape
    torch.testing.assert_close(1 / naive.learner.method.likelihood.noise.mean, expected.detach())


def test_a_run_that_diverges_ends_with_the_fix():
    with refuses("lower learning_rate", kind=Diverged):
        list(training(2, strategy="naive", **(POINTS | {"learning_rate": 1e30})).steps())


def test_the_epochs_before_a_slice_are_those_of_the_method():
    """Without any, a start at the likelihood is none."""
    recipe = POINTS | {"posterior": "gaussian"}
    vcl, none, some = (
        training(1, strategy=name, options=options, **recipe)
        for name, options in (
            ("vcl", {}),
            ("ml_init_vcl", {"ml_epochs": 0}),
            ("ml_init_vcl", {"ml_epochs": 3}),
        )
    )
    for made in (vcl, none, some):
        list(made.steps())
    assert none.after == vcl.after
    assert some.after != vcl.after


def test_a_method_that_lanes_know_trains_alone_with_options_of_its_own():
    (lane,) = plan("diabetes", ["badam"], [0])
    (alone,) = plan("diabetes", ["badam"], [0], {"options.beta2": 0.99})
    assert lane.is_lane
    assert not alone.is_lane


def test_joint_on_slices_is_training_on_all_rows_for_as_many_steps():
    joint = training(2, strategy="joint", **POINTS)
    whole = training(1, strategy="naive", **(POINTS | {"steps": 2 * POINTS["steps"]}))
    assert [step.done for step in joint.steps()] == [1]
    list(whole.steps())
    assert joint.after == {2: whole.after[0]}
    assert joint.facts()["carried_bytes"] is None


@pytest.mark.parametrize("name", ["coreset_vcl", "single_task"])
def test_a_method_that_predicts_by_networks_of_its_own_is_scored(name):
    posterior = "gaussian" if name == "coreset_vcl" else "none"
    options = {"coreset_size": 5} if name == "coreset_vcl" else {}
    made = training(2, strategy=name, options=options, **(POINTS | {"posterior": posterior}))
    assert [step.done for step in made.steps()] == [1, 2]
    assert made.fault() is None
