import math
from pathlib import Path
from typing import Any

import pytest
import torch
from failing import fails, refuses

from vcl_radial.data.streams import build_stream
from vcl_radial.errors import Diverged
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.tracks.continual import networks
from vcl_radial.tracks.continual.methods import optimizer_for
from vcl_radial.tracks.continual.networks import make_network
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.training import ContinualRun

DIGITS = StreamSettings(dataset="digits")
SINGLE_HEAD = StreamSettings(dataset="digits", heads="single")


def recipe(**settings: Any) -> Recipe:
    return Recipe(**{"epochs": 1, "hidden": [8], "eval_samples": 2, "batch_size": 32} | settings)


def finished(*args: Any, **kwargs: Any) -> ContinualRun:
    run = ContinualRun(*args, **kwargs)
    assert list(run.finish_tasks())[-1] == run.tasks
    return run


def cell(run: ContinualRun, trained: int, evaluated: int, metric: str) -> float:
    (value,) = (v for i, j, m, v in run.rows if (i, j, m) == (trained, evaluated, metric))
    return value


@pytest.mark.parametrize(
    ("posterior", "optimizer"),
    [("radial", "amsgrad"), ("radial-eq44", "adam"), ("gaussian", "sgd"), ("none", "sgd")],
)
def test_every_posterior_trains_and_so_does_every_optimiser(posterior, optimizer):
    strategy = "naive" if posterior == "none" else "vcl"
    stream = StreamSettings(dataset="digits", tasks=2)
    run = finished(stream, recipe(posterior=posterior, optimizer=optimizer, strategy=strategy), 0)
    assert run.accuracy().value.map(torch.tensor).map(torch.isfinite).all()


LABELS = {"likelihood": "one-hot", "label_scale": 3.0, "learning_rate": 1e-2, "epochs": 5}
SERVED = [
    {"strategy": "vcl", "posterior": "radial"},
    *({"strategy": s, "posterior": "gaussian"} for s in ("proximal_vcl", "sfsvi")),
    *({"strategy": s, "posterior": "none"} for s in ("ewc", "laplace_kronecker", "vogn")),
]
"""Each takes something else of a likelihood: its gradient, its curvature, single points."""


@pytest.mark.parametrize("method", SERVED, ids=lambda method: " ".join(method.values()))
def test_a_method_learns_labels_with_noise_and_predicts_classes(method):
    two = StreamSettings(dataset="digits", tasks=2, first_tasks=1)
    run = finished(two, recipe(hidden=[32], schedule="cosine", **LABELS, **method), 0)
    assert cell(run, 1, 1, "accuracy") > 60  # of five classes
    assert cell(run, 1, 1, "nll") < math.log(5)


def test_noise_of_labels_is_for_labels_with_noise():
    with pytest.raises(ValueError, match=r"label_variance .*likelihood = 'one-hot'"):
        recipe(label_variance=0.2)


@pytest.mark.parametrize(
    ("key", "value", "families"),
    [
        ("rank", 3, "'low-rank' or 'radial-low-rank'"),
        ("prior_length", 0.4, "'rdp'"),
        ("radius", "weibull", "'rdp'"),
    ],
)
def test_keys_of_a_posterior_are_for_it_alone(key, value, families):
    with fails(key, f"posterior = {families}"):
        recipe(posterior="radial", **{key: value}).check_posterior()
    for posterior in [*families.replace("'", "").split(" or "), "own:Family"]:
        settings = {key: value, "grouping": "row" if posterior == "rdp" else "layer"}
        recipe(posterior=posterior, **settings).check_posterior()


def test_the_weights_of_a_group_are_those_that_the_family_knows():
    with fails("grouping", "row", "posterior = 'radial'", "layer"):
        recipe(posterior="radial", grouping="row").check_posterior()
    with fails("grouping", "unit", "posterior = 'rdp'", "row"):
        recipe(posterior="rdp", grouping="unit").check_posterior()
    with fails("posterior", "radical", "radial"):
        recipe(posterior="radical").check_posterior()
    recipe(posterior="none", grouping="row").check_posterior()


def test_a_posterior_is_carried_from_task_to_task_and_what_learns_all_at_once_carries_nothing():
    two = StreamSettings(dataset="digits", tasks=2)
    run = finished(two, recipe(), 0)
    assert run.carried_bytes == 4 * run.parameters
    assert finished(two, recipe(strategy="joint", posterior="none"), 0).carried_bytes is None


def test_sampling_moves_what_a_posterior_predicts_and_nothing_of_a_point_estimate():
    two = StreamSettings(dataset="digits", tasks=2)
    spread, narrow = (finished(two, recipe(initial_noise=n), 0) for n in (1e-1, 1e-4))
    point = finished(two, recipe(strategy="naive", posterior="none"), 0)
    for task in (1, 2):
        wide, thin, none = (cell(run, 2, task, "sampling") for run in (spread, narrow, point))
        assert wide > 10 * thin > 0
        assert none == 0


def test_training_teaches_each_task_of_a_multi_head_run():
    run = finished(DIGITS, recipe(strategy="naive", posterior="none", epochs=10, hidden=[50]), 0)
    for task in range(1, 6):
        assert cell(run, task, task, "accuracy") > 90
        assert cell(run, task, task, "nll") < math.log(2)  # what knows nothing has


def test_fine_tuning_of_one_head_for_all_takes_old_tasks_for_the_newest():
    settings = recipe(strategy="naive", posterior="none", epochs=20, hidden=[50])
    run = finished(SINGLE_HEAD, settings, 0)
    old = range(1, 5)
    assert cell(run, 5, 5, "accuracy") > 85
    assert sum(cell(run, 5, task, "accuracy") for task in old) / 4 < 30
    assert sum(cell(run, 5, task, "predicted_as_newest") for task in old) / 4 > 50
    for task in old:
        # A digit that is taken for one of the newest task is not recognised.
        right, newest = (cell(run, 5, task, m) for m in ("accuracy", "predicted_as_newest"))
        assert right + newest <= 100 + 1e-6
    assert cell(run, 5, 5, "predicted_as_newest") >= cell(run, 5, 5, "accuracy")


def test_only_heads_that_are_shared_can_take_a_task_for_the_newest():
    assert "predicted_as_newest" not in set(finished(DIGITS, recipe(), 0).accuracy().metric)
    joint = finished(SINGLE_HEAD, recipe(strategy="joint", posterior="none"), 0)
    assert "predicted_as_newest" not in set(joint.accuracy().metric)


@pytest.mark.parametrize("heads", ["multi", "single"])
def test_the_first_tasks_of_a_stream_do_not_know_what_comes_after_them(heads):
    whole, short = (
        finished(StreamSettings(dataset="digits", heads=heads, first_tasks=first), recipe(), 0)
        for first in (None, 2)
    )
    so_far = {row for row in whole.rows if row[0] <= 2 and row[1] <= 2}
    assert so_far == set(short.rows)


def test_average_accuracy_is_over_the_tasks_trained_so_far():
    run = ContinualRun(DIGITS, recipe(), 0)
    steps = run.finish_tasks()
    for done in (1, 2):
        assert next(steps) == done
        seen = [cell(run, done, task, "accuracy") for task in range(1, done + 1)]
        assert run.average_accuracy() == pytest.approx(sum(seen) / done)


def test_the_first_task_may_have_epochs_of_its_own():
    epochs: list[tuple[int, int]] = []
    stream = StreamSettings(dataset="digits", tasks=2)
    longer = recipe(epochs=1, first_task_epochs=3)
    finished(stream, longer, 0, on_epoch=lambda *epoch: epochs.append(epoch[:2]))
    assert epochs == [(1, 1), (1, 2), (1, 3), (2, 1)]
    assert longer.epochs_until(2) == len(epochs)


def test_a_run_that_goes_on_from_a_state_ends_as_if_it_had_not_stopped():
    """The second run has its own generators, and others have drawn from the global ones."""
    whole = finished(SINGLE_HEAD, recipe(), 3)
    first = ContinualRun(SINGLE_HEAD, recipe(), 3)
    steps = first.finish_tasks()
    next(steps), next(steps)
    second = ContinualRun(SINGLE_HEAD, recipe(), 3)
    second.load_state_dict(first.state_dict())
    torch.rand(17)
    assert list(second.finish_tasks()) == [3, 4, 5]
    assert second.rows == whole.rows
    assert second.layers == whole.layers
    assert second.movement().task_trained.tolist() == [t for t in range(1, 6) for _ in range(2)]


def test_the_state_is_plain_enough_to_be_read_without_unpickling(tmp_path: Path):
    run = finished(StreamSettings(dataset="digits", tasks=2), recipe(), 0)
    torch.save(run.state_dict(), tmp_path / "state")
    state = torch.load(tmp_path / "state", weights_only=True)
    assert [tuple(row) for row in state["rows"]] == run.rows


def with_unreadable(split: str):
    """`build_stream`, but with inputs in a split of which any sum overflows."""

    def build(*args: Any):
        stream = build_stream(*args)
        for rows in getattr(stream, split):
            stream.x[rows] = torch.finfo(stream.x.dtype).max
        return stream

    return build


def test_evaluation_on_validation_data_never_touches_test_data(monkeypatch):
    clean = finished(DIGITS, recipe(), 0, evaluate_on="validation")
    monkeypatch.setattr(networks, "build_stream", with_unreadable("test"))
    blind = finished(DIGITS, recipe(), 0, evaluate_on="validation")
    assert blind.rows == clean.rows
    with pytest.raises(Diverged):
        finished(DIGITS, recipe(), 0, evaluate_on="test")


def test_held_out_data_are_neither_trained_on_nor_scored(monkeypatch):
    clean = finished(DIGITS, recipe(), 0)
    monkeypatch.setattr(networks, "build_stream", with_unreadable("validation"))
    assert finished(DIGITS, recipe(), 0).rows == clean.rows


def test_a_batch_larger_than_the_smallest_task_needs_incomplete_batches():
    with refuses("batch_size = 400"):
        ContinualRun(DIGITS, recipe(batch_size=400), 0)
    finished(DIGITS, recipe(batch_size=400, drop_last=False), 0)


def test_rho_has_its_own_learning_rate_where_one_is_given():
    stream = build_stream({"kind": "split", "dataset": "digits"})
    settings = recipe(learning_rate=0.5, rho_learning_rate=0.25)
    network = make_network(stream, settings)
    rho = {id(m.rho) for m in network.modules() if isinstance(m, PosteriorBlock)}
    optimizer = optimizer_for(settings)(network)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert rates == {id(p): 0.25 if id(p) in rho else 0.5 for p in network.parameters()}
    assert rho
    assert rho != set(rates)


def test_a_network_without_a_posterior_has_plain_parameters_only():
    stream = build_stream({"kind": "split", "dataset": "digits"})
    network = make_network(stream, recipe(posterior="none"))
    assert not any(isinstance(module, PosteriorBlock) for module in network.modules())


def test_real_fashion_mnist_is_learnt_from_its_published_files(real_data):
    stream = StreamSettings(dataset="fashion-mnist")
    settings = recipe(
        strategy="naive", posterior="none", hidden=[16], batch_size=128, drop_last=True
    )
    run = finished(stream, settings, 0)
    assert run.tasks == 5
    for task in range(1, 6):
        assert cell(run, task, task, "accuracy") > 85
    assert run.stream.task_names[0] == "T-shirt/top, Trouser"
