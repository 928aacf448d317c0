"""Replay: which points its buffer keeps, and the loss that they stand for."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import ALL, Learner, digits, network

from vcl_radial.errors import UserError
from vcl_radial.methods.replay import coded, decoded, lowest_lots
from vcl_radial.methods.tasks import Batch
from vcl_radial.runs import planning


def lots(n, seed=0):
    return torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=60)
@given(
    n=st.integers(1, 60),
    size=st.integers(1, 40),
    balanced=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_thinning_out_task_by_task_keeps_what_one_look_at_all_would(n, size, balanced, seed):
    torch.manual_seed(seed)
    tasks, y, drawn = torch.randint(4, (n,)).sort().values, torch.randint(3, (n,)), lots(n, seed)
    at_once = lowest_lots(y, tasks, drawn, size, balanced)
    kept = torch.empty(0, dtype=torch.int64)
    for task in range(4):
        kept = torch.cat([kept, (tasks == task).nonzero().flatten()])
        kept = kept[lowest_lots(y[kept], tasks[kept], drawn[kept], size, balanced)]
    assert torch.equal(kept, at_once)
    assert len(kept) == min(n, size)


@settings(max_examples=60)
@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=6), size=st.integers(1, 60))
def test_a_balanced_buffer_has_as_many_of_each_class_as_there_are_places_and_points(counts, size):
    y = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])
    kept = lowest_lots(y, torch.zeros_like(y), lots(len(y)), size, balanced=True)
    of_class = y[kept].bincount(minlength=len(counts)).tolist()
    # Only a class of which all are kept, or by one for want of a place, has fewer than another.
    for have, count in zip(of_class, counts, strict=True):
        assert have == count or have >= max(of_class) - 1


def test_a_reservoir_is_a_uniform_sample():
    n, size, draws = 12, 4, 3000
    torch.manual_seed(0)
    counts = torch.zeros(n)
    for seed in range(draws):
        counts[lowest_lots(torch.zeros(n), torch.zeros(n), lots(n, seed), size, False)] += 1
    expected = draws * size / n
    assert (counts - expected).abs().max() < 5 * (expected * (1 - size / n)) ** 0.5


@pytest.mark.parametrize("selection", ["reservoir", "class-balanced"])
def test_the_buffer_holds_points_of_past_tasks_as_they_were(selection):
    learner = Learner("replay", network(None), buffer_size=30, selection=selection).train(0, 1, 2)
    _, y, tasks, _ = learner.method.buffer
    x = learner.method.inputs
    assert len(x) == 30
    assert learner.method.past_points == len(learner.points(0, 1, 2).y)
    assert set(tasks.tolist()) == {0, 1, 2}
    for task in range(3):
        points = learner.points(task)
        for inputs, label in zip(x[tasks == task], y[tasks == task], strict=True):
            assert label in points.y[(points.x == inputs).all(1)]


# Bytes


@pytest.mark.parametrize("values", [2, 256])
def test_few_values_are_held_as_bytes_and_come_back_to_the_last_bit(values):
    x = (torch.arange(3 * 4 * 90).remainder(values).float() - 72.9).div(90.1).view(-1, 3, 4)
    codes, levels = coded(x)
    assert (codes.dtype, codes.shape, len(levels)) == (torch.uint8, x.shape, values)
    assert torch.equal(decoded(codes, levels), x)


@pytest.mark.parametrize("first", [True, False])
def test_more_values_than_a_byte_has_are_held_as_they_are(first):
    """Whether the first inputs show them already or not."""
    x = torch.arange(257.0).repeat(8).view(-1, 8)
    x = x if first else torch.cat([torch.zeros(100, 8), x])
    codes, levels = coded(x)
    assert codes is x
    assert not len(levels)
    assert torch.equal(decoded(codes, levels), x)


def bytes_of(method):
    return sum(t.numel() * t.element_size() for t in (*method.buffer, method.levels))


@pytest.mark.parametrize("grey", [True, False])
def test_as_many_points_are_kept_as_the_bytes_hold(grey):
    """A digit is 64 values; target, label and lot take 8 bytes each."""
    stream = digits("single")
    if not grey:
        stream = dataclasses.replace(stream, x=stream.x + 0.01 * torch.rand_like(stream.x))
    point, levels = (64 + 24, 256 * 4) if grey else (64 * 4 + 24, 0)
    room = levels + 20 * point + point - 1
    learner = Learner("replay", network(None, False), stream, buffer_bytes=room).train(0, 1, 2)
    assert len(learner.method.buffer[0]) == 20
    assert room - levels - point < bytes_of(learner.method) <= room


def test_tasks_of_many_values_after_one_of_few_are_held_as_they_came():
    learner = Learner("replay", network(None, False), buffer_bytes=20_000).train(0)
    method = learner.method
    assert method.buffer[0].dtype == torch.uint8
    before = method.inputs.clone()
    x = torch.rand(50, 64)
    task = learner.begin(1)
    method.end_task(dataclasses.replace(task, batches=lambda: [Batch(x, torch.ones(50).long())]))
    assert method.buffer[0].dtype == torch.float32
    assert len(method.inputs) == 20_000 // (64 * 4 + 24)
    of_both = torch.cat([before, x])
    assert all((of_both == inputs).all(1).any() for inputs in method.inputs)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"buffer_bytes": 0}, "= 0"),
        ({"buffer_bytes": 9999, "buffer_size": 9}, ".* options.buffer_size = 9"),
        ({"buffer_bytes": 1000}, ".* 1112$"),
    ],
)
def test_a_buffer_of_no_size_is_refused_before_a_step(options, named):
    with pytest.raises(UserError, match=f"^options.buffer_bytes {named}"):
        Learner("replay", network(None), **options).begin(0)


@pytest.mark.parametrize(
    ("settings", "points"),
    [({}, 200), ({"options.buffer_size": 50}, 50), ({"options.buffer_bytes": 10_000}, 102)],
)
def test_the_shipped_recipe_takes_a_buffer_of_points_or_of_bytes(settings, points):
    (run,) = planning.plan("split-digits-single-head", ["replay"], [0], settings)
    learner = Learner("replay", network(None, False), **run.recipe.options).train(0, 1, 2)
    assert len(learner.method.buffer[0]) == points


def joint_loss(learner, *numbers):
    """The mean NLL over all training points of these tasks."""
    joint = Learner("joint", learner.network)
    joint.begin(*numbers)
    with torch.no_grad():
        return joint.method.loss(joint.whole, joint.method.outputs(joint.whole))


def test_with_room_for_all_the_loss_is_that_of_joint_training(multi_head):
    learner = Learner("replay", network(None, multi_head), buffer_size=ALL).train(0, 1, 2)
    assert len(learner.method.buffer[0]) == learner.method.past_points
    loss = learner.standing_loss(3, ALL)
    torch.testing.assert_close(loss, joint_loss(learner, 0, 1, 2, 3))


def test_with_little_room_the_loss_is_that_of_joint_training_in_the_mean():
    learner, losses = Learner("replay", network(None), batch_size=50).train(0), []
    method = learner.method
    for seed in range(60):
        method.buffer, method.past_points = (), 0
        torch.manual_seed(100 + seed)
        method.buffer_size = 20 if seed % 2 else 80  # all of it in a step, and a part
        for number in (0, 1):
            method.end_task(learner.begin(number))
        learner.begin(2)
        total = 0.0
        with torch.no_grad():
            for batch in learner.whole.split(50):
                extended = method.extend(batch)
                loss = method.loss(extended, method.outputs(extended))
                total += loss.item() * len(batch.y)
        losses.append(total / len(learner.whole.y))
    losses = torch.tensor(losses)
    error = losses.std() / len(losses) ** 0.5
    assert abs(losses.mean() - joint_loss(learner, 0, 1, 2)) < 4 * error


def test_replay_remembers():
    options = {"epochs": 10, "buffer_size": 100}
    learner = Learner("replay", network(None, False), **options).train(*range(5))
    assert learner.accuracy(*range(4)) > 65  # fine-tuning has less than 30 left
