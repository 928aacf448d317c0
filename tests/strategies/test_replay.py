import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import (
    make,
    score,
    standing,
    train,
)
from torch.nn.functional import cross_entropy

from vcl_radial.errors import UserError
from vcl_radial.methods.replay import lowest_lots
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.replay import Replay


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"buffer_size": 0}, "buffer_size = 0 must be at least 1"),
        ({"selection": "newest"}, "selection = 'newest' is not known"),
    ],
)
def test_wrong_settings_are_named(options, words, make_network, multi_head_stream):
    with pytest.raises(UserError, match=words):
        make(Replay, make_network(None), multi_head_stream, **options)


def lots(n, seed=0):
    return torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=60, deadline=None)
@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=6), size=st.integers(1, 60))
def test_a_balanced_buffer_has_as_many_of_each_class_as_there_are_places_and_points(counts, size):
    y = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])
    kept = lowest_lots(y, torch.zeros_like(y), lots(len(y)), size, balanced=True)
    found = y[kept].bincount(minlength=len(counts)).tolist()
    # Only a class of which all are kept, or by one for want of a place, has fewer than another.
    for have, count in zip(found, counts, strict=True):
        assert have == count or have >= max(found) - 1


def test_a_reservoir_is_a_uniform_sample():
    n, size, draws = 12, 4, 3000
    torch.manual_seed(0)
    counts = torch.zeros(n)
    for seed in range(draws):
        counts[lowest_lots(torch.zeros(n), torch.zeros(n), lots(n, seed), size, False)] += 1
    expected = draws * size / n
    assert (counts - expected).abs().max() < 5 * (expected * (1 - size / n)) ** 0.5


@pytest.mark.parametrize("selection", ["reservoir", "class-balanced"])
def test_the_buffer_holds_points_of_past_tasks_as_they_were(
    selection, make_network, multi_head_stream, multi_head_benchmark
):
    replay = make(
        Replay, make_network(None), multi_head_stream, buffer_size=30, selection=selection
    )
    train(replay, list(multi_head_benchmark.train_stream)[:3])
    x, y, tasks, _ = replay.buffer
    assert len(x) == 30
    assert replay.seen == sum(len(multi_head_stream.train[task]) for task in range(3))
    assert set(tasks.tolist()) == {0, 1, 2}
    for task in range(3):
        rows = multi_head_stream.inputs(task, "train")
        labels = multi_head_stream.labels(task, "train")
        for inputs, label in zip(x[tasks == task], y[tasks == task], strict=True):
            assert label in labels[(rows == inputs).all(1)]


def joint_nll(network, stream, tasks):
    """The mean NLL over all training points of these tasks."""
    with torch.no_grad():
        total = sum(
            cross_entropy(
                network(stream.inputs(t, "train"), stream.task_label(t)),
                stream.labels(t, "train"),
                reduction="sum",
            )
            for t in tasks
        )
    return total / sum(len(stream.train[t]) for t in tasks)


def test_with_room_for_all_the_loss_is_that_of_joint_training(scenario, make_network):
    multi_head, stream, benchmark = scenario
    tasks = list(benchmark.train_stream)
    network = make_network(None, multi_head)
    replay = make(Replay, network, stream, buffer_size=10_000, train_mb_size=2000)
    train(replay, tasks[:3])
    assert len(replay.buffer[0]) == replay.seen
    losses = standing(replay, tasks[3])
    torch.testing.assert_close(losses, [joint_nll(network, stream, range(4))])


def test_with_little_room_the_loss_is_that_of_joint_training_in_the_mean(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)
    network = make_network(None)
    replay = make(Replay, network, multi_head_stream, train_mb_size=50)
    train(replay, tasks[:1])
    means, method = [], replay.method

    def task(number):
        x, y = multi_head_stream.inputs(number, "train"), multi_head_stream.labels(number, "train")
        return Task(number, len(y), lambda: [Batch(x, y, number)], (number,), batch_size=50)

    for seed in range(60):
        method.buffer, method.seen = (), 0
        torch.manual_seed(100 + seed)
        method.buffer_size = 20 if seed % 2 else 80  # all of it in a step, and a part
        for number in (0, 1):
            method.begin_task(task(number))
            method.end_task(task(number))
        method.begin_task(task(2))
        network.train()
        total, (whole,) = 0.0, method.task.batches()
        for x, y in zip(whole.x.split(50), whole.y.split(50), strict=True):
            batch = method.extend(Batch(x, y, 2))
            total += method.loss(batch, method.outputs(batch)).item() * len(y)
        means.append(total / len(whole.y))
    means = torch.tensor(means)
    expected = joint_nll(network, multi_head_stream, range(3))
    assert abs(means.mean() - expected) < 4 * means.std() / len(means) ** 0.5


def test_replay_remembers(make_network, single_head_stream, single_head_benchmark):
    tasks, tests = list(single_head_benchmark.train_stream), list(single_head_benchmark.test_stream)
    found = []
    for method, options in ((Naive, {}), (Replay, {"buffer_size": 100})):
        network = make_network(None, False)
        strategy = make(method, network, single_head_stream, train_epochs=10, **options)
        train(strategy, tasks)
        found.append(score(strategy, tests[:-1]))
    assert found[0] < 30
    assert found[1] > 65
