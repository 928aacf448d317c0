"""A lane is the run that it would be alone."""

import os
from functools import cache

import pandas as pd
import pytest
import torch

from vcl_radial import native
from vcl_radial.tracks.continual.lane_runs import LaneRuns, shape
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.training import ContinualRun

MULTI_HEAD = StreamSettings(dataset="digits", tasks=2)
SINGLE_HEAD = StreamSettings(dataset="digits", tasks=2, heads="single")


def recipe(posterior="radial", **settings):
    known = {"epochs": 2, "hidden": [16, 8], "eval_samples": 4, "batch_size": 64}
    strategy = "naive" if posterior == "none" else "vcl"
    return Recipe(**known | {"strategy": strategy, "posterior": posterior} | settings)


def alone(settings, of_lane, seed, **kwargs):
    run = ContinualRun(settings, of_lane, seed, **kwargs)
    list(run.finish_tasks())
    return run


@cache
def usual(seed):
    """The finished run of the usual recipe, which several tests compare lanes with."""
    return alone(MULTI_HEAD, recipe(), seed)


def together(settings, recipes, seeds, **kwargs):
    runs = LaneRuns(settings, recipes, seeds, **kwargs)
    list(runs.steps())
    return runs


def assert_same(lane, run, tolerance=1e-4):
    """Equal weights up to the rounding of batched products, and so equal scores."""
    ours, theirs = lane.method.network.state_dict(), run.method.network.state_dict()
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(ours[name], value, rtol=tolerance, atol=tolerance)
        else:
            assert ours[name] == value
    a, b = lane.accuracy(), run.accuracy()
    cells = ["task_trained", "task_evaluated", "metric"]
    pd.testing.assert_frame_equal(a[cells], b[cells])
    moved = [run.movement().drop(columns="units_at_rest") for run in (lane, run)]
    assert moved[0].empty == (run.recipe.posterior == "none")
    pd.testing.assert_frame_equal(*moved, rtol=100 * tolerance, atol=tolerance)
    assert lane.carried_bytes == run.carried_bytes
    nll = a.metric == "nll"
    torch.testing.assert_close(
        torch.tensor(a.value[nll].values),
        torch.tensor(b.value[nll].values),
        rtol=10 * tolerance,
        atol=10 * tolerance,
    )


@pytest.mark.parametrize(
    ("posterior", "settings"),
    [("radial-eq44", MULTI_HEAD), ("gaussian", MULTI_HEAD), ("none", MULTI_HEAD),
     ("radial", SINGLE_HEAD), ("none", SINGLE_HEAD)],
)  # fmt: skip
def test_every_lane_is_the_run_with_its_seed(posterior, settings):
    seeds = [0, 5]
    runs = together(settings, [recipe(posterior)] * 2, seeds)
    for lane, seed in zip(runs.lanes, seeds, strict=True):
        assert_same(lane, alone(settings, recipe(posterior), seed))


@pytest.mark.parametrize(
    "shared",
    [
        {"grouping": "unit"},
        {"train_samples": 2},
        {"optimizer": "adam", "drop_last": False},
        {"precision": "bfloat16"},
        {"point_heads": True},
        {"likelihood": "one-hot", "label_variance": 0.5, "label_scale": 2.0},
        {"options": {"restart": True}},
        {"kl_schedule": "minibatch", "drop_last": False},
        {"kl_schedule": "linear", "strategy": "proximal_vcl"},
        {"strategy": "proximal_vcl", "posterior": "gaussian", "kl_weight": 0.1},
        {"strategy": "proximal_vcl", "optimizer": "adam", "schedule": "cosine", "kl_weight": 1e-3},
    ],
    ids=str,
)
def test_whatever_the_shape(shared):
    _, lane = together(MULTI_HEAD, [recipe(**shared)] * 2, [0, 1]).lanes
    rounding = 2e-2 if "precision" in shared else 1e-4
    assert_same(lane, alone(MULTI_HEAD, recipe(**shared), 1), rounding)


def test_lanes_may_differ_in_all_that_leaves_the_shape():
    recipes = [
        recipe(epochs=1, learning_rate=3e-3),
        recipe(epochs=3, kl_weight=0.1, rho_learning_rate=1e-2),
        recipe(epochs=2, initial_noise=0.01, prior_scale=2.0),
        recipe(epochs=3, initial_rho=-3.0),
        recipe(epochs=2, first_task_epochs=4, schedule="cosine"),
    ]
    assert len({shape(r) for r in recipes}) == 1
    seeds = [0, 0, 3, 0, 1]
    runs = together(MULTI_HEAD, recipes, seeds)
    for lane, of_lane, seed in zip(runs.lanes, recipes, seeds, strict=True):
        assert_same(lane, alone(MULTI_HEAD, of_lane, seed))


def test_the_kl_follows_the_epochs_of_each_lane():
    recipes = [recipe(epochs=e, kl_schedule="warm-up", kl_weight=5.0) for e in (1, 3)]
    runs = together(MULTI_HEAD, recipes, [0, 1])
    for lane, of_lane, seed in zip(runs.lanes, recipes, [0, 1], strict=True):
        assert_same(lane, alone(MULTI_HEAD, of_lane, seed))


def test_without_the_compiled_pass_a_lane_is_its_run_too(monkeypatch):
    monkeypatch.setattr(native.step, "library", lambda: None)
    runs = together(MULTI_HEAD, [recipe()] * 2, [0, 1])
    for lane, seed in zip(runs.lanes, [0, 1], strict=True):
        assert_same(lane, alone(MULTI_HEAD, recipe(), seed))


def test_a_run_alone_goes_on_from_a_lanes_state_and_a_lane_from_a_runs():
    lanes = LaneRuns(MULTI_HEAD, [recipe()] * 2, [0, 1])
    steps = lanes.steps()
    next(steps)
    run = ContinualRun(MULTI_HEAD, recipe(), 1)
    run.load_state_dict(lanes.lanes[1].state_dict())
    list(run.finish_tasks())
    list(steps)
    assert_same(lanes.lanes[1], run)

    first = ContinualRun(MULTI_HEAD, recipe(), 1)
    next(first.finish_tasks())
    resumed = LaneRuns(MULTI_HEAD, [recipe()] * 2, [0, 1])
    resumed.lanes[1].load_state_dict(first.state_dict())
    list(resumed.steps())
    for lane, seed in zip(resumed.lanes, [0, 1], strict=True):
        assert_same(lane, usual(seed))


def test_a_lane_that_diverges_leaves_the_others_alone():
    recipes = [recipe(), recipe(learning_rate=1e30), recipe()]
    runs = together(MULTI_HEAD, recipes, [0, 1, 2])
    good, bad, other = runs.lanes
    assert bad.trainer.fault is not None
    assert bad.tasks_done == 1
    for lane, seed in ((good, 0), (other, 2)):
        assert lane.trainer.fault is None
        assert_same(lane, usual(seed))


def test_what_cannot_be_a_lane_has_no_shape():
    assert shape(recipe()) is not None
    assert shape(recipe(optimizer="sgd")) is None
    assert shape(recipe(options={"a": 1})) is None
    assert shape(Recipe(strategy="joint", posterior="none")) is None
    assert shape(Recipe(posterior="rdp", grouping="row")) is None
    assert shape(Recipe(posterior="low-rank")) is None
    assert shape(Recipe(posterior="radial-low-rank")) is None
    assert shape(recipe(hidden=[4])) != shape(recipe())
    assert shape(recipe(strategy="proximal_vcl")) not in (None, shape(recipe()))
    assert shape(recipe(strategy="gvcl")) is None
    with pytest.raises(ValueError, match="one shape"):
        LaneRuns(MULTI_HEAD, [recipe(), recipe(hidden=[4])], [0, 1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize(
    "of_lanes",
    [recipe(), recipe("gaussian"), recipe("none"), recipe(strategy="proximal_vcl")],
    ids=["radial", "gaussian", "none", "proximal"],
)
def test_lanes_on_a_gpu_are_runs_on_that_gpu(of_lanes):
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    runs = together(MULTI_HEAD, [of_lanes] * 2, [0, 1], device="cuda")
    for lane, seed in zip(runs.lanes, [0, 1], strict=True):
        assert_same(lane, alone(MULTI_HEAD, of_lanes, seed, device="cuda"), 1e-2)
