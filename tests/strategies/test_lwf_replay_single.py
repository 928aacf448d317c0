import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.models import MTSimpleMLP
from avalanche.training.plugins import EvaluationPlugin
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from torch.optim import Adam

from vcl_radial.errors import UserError
from vcl_radial.strategies import Scores
from vcl_radial.strategies.lwf import LwF, distillation
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.replay import Replay, lowest_lots
from vcl_radial.strategies.single_task import SingleTask


def make(method, network, stream, **settings):
    settings = {
        "optimizer": lambda model: Adam(model.parameters(), lr=1e-3),
        "train_mb_size": 32,
        "eval_mb_size": 500,
        "train_epochs": 1,
        "eval_samples": 1,
        "evaluator": EvaluationPlugin(Scores()),
        "tensor_stream": stream,
        **settings,
    }
    return method(model=network, **settings)


def train(strategy, experiences, seed=0):
    for experience in experiences:
        # The randomness of a task is its own, wherever it comes.
        torch.manual_seed(seed + experience.current_experience)
        strategy.train(experience, eval_streams=[])


def evaluate(strategy, experiences):
    """The log-predictive of all points, and mean accuracy and NLL over the experiences."""
    (scores,) = (p for p in strategy.evaluator.metrics if isinstance(p, Scores))
    found = []
    for experience in experiences:
        strategy.eval([experience])
        found.append((scores.predictions, scores.values["accuracy"], scores.values["nll"]))
    outputs, accuracies, nlls = zip(*found, strict=True)
    return torch.cat(outputs), sum(accuracies) / len(found), sum(nlls) / len(found)


def predictions(strategy, experiences):
    return evaluate(strategy, experiences)[0]


def weights(strategy):
    return torch.cat([p.detach().flatten() for p in strategy.model.parameters()])


class Steps(SupervisedPlugin):
    """The losses of the steps."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def before_backward(self, strategy, **kwargs):
        self.losses.append(strategy.loss.detach().squeeze())


def standing(strategy, experience):
    """The steps of a pass over an experience, none of which moves the weights."""
    steps = Steps()
    strategy.plugins.append(steps)
    strategy.optimizer_step = lambda: None
    strategy.train(experience, eval_streams=[])
    return steps


METHODS = [
    (LwF, {"strength": 2.0}),
    (Replay, {"buffer_size": 20}),
    (Replay, {"buffer_size": 60, "selection": "class-balanced"}),
    (SingleTask, {}),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_a_state_dict_brings_the_strategy_back(method, options, scenario, make_network, tmp_path):
    multi_head, stream, benchmark = scenario
    tasks, tests = list(benchmark.train_stream), list(benchmark.test_stream)
    first = make(method, make_network(None, multi_head), stream, **options)
    train(first, tasks[:2])
    torch.save(first.state_dict(), tmp_path / "state")
    second = make(method, make_network(None, multi_head), stream, **options)
    second.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert torch.equal(predictions(first, tests), predictions(second, tests))
    for each in (first, second):
        train(each, tasks[2:4])
    assert torch.equal(weights(first), weights(second))
    assert torch.equal(predictions(first, tests), predictions(second, tests))


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_evaluating_does_not_change_training(method, options, scenario, make_network):
    multi_head, stream, benchmark = scenario
    ends = []
    for eval_every in (-1, 1):
        strategy = make(
            method, make_network(None, multi_head), stream, eval_every=eval_every, **options
        )
        for experience in list(benchmark.train_stream)[:3]:
            torch.manual_seed(1)
            strategy.train(experience, eval_streams=[benchmark.test_stream[:3]])
        ends.append(predictions(strategy, benchmark.test_stream[:3]))
    assert torch.equal(*ends)


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_avalanche_loaders_serve_as_well(
    method, options, make_network, multi_head_stream, multi_head_benchmark
):
    strategy = make(method, make_network(None), None, train_epochs=10, **options)
    train(strategy, list(multi_head_benchmark.train_stream)[:2])
    assert evaluate(strategy, list(multi_head_benchmark.test_stream)[:2])[1] > 90


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        (LwF, {"temperature": 0}, "temperature = 0 must be above 0"),
        (Replay, {"buffer_size": 0}, "buffer_size = 0 must be at least 1"),
        (Replay, {"selection": "newest"}, "selection = 'newest' is not known"),
    ],
)
def test_wrong_settings_are_named(method, options, words, make_network, multi_head_stream):
    with pytest.raises(UserError, match=words):
        make(method, make_network(None), multi_head_stream, **options)


# learning without forgetting


@settings(max_examples=50, deadline=None)
@given(temperature=st.floats(0.5, 8), seed=st.integers(0, 10_000))
def test_distillation_is_least_where_the_networks_agree_and_there_the_entropy(temperature, seed):
    torch.manual_seed(seed)
    before = 3 * torch.randn(4, 5, dtype=torch.float64)
    entropy = torch.distributions.Categorical(logits=before / temperature).entropy().mean()
    # A shift of all logits of a point is the same prediction.
    now = (before + torch.randn(4, 1)).requires_grad_()
    agreeing = distillation(now, before, temperature)
    torch.testing.assert_close(agreeing, entropy)
    (gradient,) = torch.autograd.grad(agreeing, now)
    torch.testing.assert_close(gradient, torch.zeros_like(now), atol=1e-12, rtol=0)
    other = distillation(before + 0.1 * torch.randn(4, 5), before, temperature)
    assert other > entropy


def test_a_task_starts_at_its_nll_and_the_entropies_of_the_old_heads(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)
    network = make_network(None)
    lwf = make(LwF, network, multi_head_stream, strength=0.7, temperature=3.0, train_mb_size=1000)
    train(lwf, tasks[:2])
    steps = standing(lwf, tasks[2])
    x, y = multi_head_stream.inputs(2, "train"), multi_head_stream.labels(2, "train")
    with torch.no_grad():
        expected = cross_entropy(network(x, 2), y)
        for head in (0, 1):
            tempered = torch.distributions.Categorical(logits=network(x, head) / 3.0)
            expected += 0.7 * tempered.entropy().mean()
    torch.testing.assert_close(steps.losses, [expected])


def test_only_heads_with_a_past_are_distilled(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)
    network = make_network(None)
    lwf = make(LwF, network, multi_head_stream)
    network.head.adapt(range(5))
    train(lwf, tasks[:1])
    before = {task: network.head.head(task).weight.clone() for task in range(5)}
    train(lwf, tasks[1:2])
    moved = {
        task for task in range(5) if not torch.equal(network.head.head(task).weight, before[task])
    }
    assert moved == {0, 1}
    assert lwf.trains_old_heads


def test_with_one_head_only_trained_classes_are_distilled(
    make_network, single_head_stream, single_head_benchmark
):
    tasks = list(single_head_benchmark.train_stream)
    network = make_network(None, False)
    lwf = make(LwF, network, single_head_stream, train_mb_size=1000)
    train(lwf, tasks[:2])
    assert lwf.classes == {0: [0, 1, 2, 3]}
    steps = standing(lwf, tasks[2])
    x, y = single_head_stream.inputs(2, "train"), single_head_stream.labels(2, "train")
    with torch.no_grad():
        logits = network(x)
        entropy = torch.distributions.Categorical(logits=logits[:, :4] / 2).entropy().mean()
        torch.testing.assert_close(steps.losses, [cross_entropy(logits, y) + entropy])


def test_without_strength_it_is_fine_tuning(scenario, make_network):
    multi_head, stream, benchmark = scenario
    ends = []
    for method, options in ((LwF, {"strength": 0.0}), (Naive, {})):
        strategy = make(method, make_network(None, multi_head), stream, **options)
        train(strategy, list(benchmark.train_stream)[:3])
        ends.append(weights(strategy))
    assert torch.equal(*ends)


def test_distilled_heads_forget_less(make_network, multi_head_stream, multi_head_benchmark):
    tasks, tests = list(multi_head_benchmark.train_stream), list(multi_head_benchmark.test_stream)
    drift = []
    for strength in (0.0, 1.0):
        lwf = make(LwF, make_network(None), multi_head_stream, train_epochs=10, strength=strength)
        train(lwf, tasks[:1])
        before = predictions(lwf, tests[:1]).exp()
        train(lwf, tasks[1:3])
        drift.append((predictions(lwf, tests[:1]).exp() - before).abs().mean())
    assert drift[1] < 0.7 * drift[0]


def test_a_model_whose_heads_are_not_ours_is_refused(multi_head_stream):
    with pytest.raises(UserError, match="lwf cannot tell the heads of a MTSimpleMLP apart"):
        make(LwF, MTSimpleMLP(64), multi_head_stream)


# replay


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
    steps = standing(replay, tasks[3])
    torch.testing.assert_close(steps.losses, [joint_nll(network, stream, range(4))])


def test_with_little_room_the_loss_is_that_of_joint_training_in_the_mean(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)
    network = make_network(None)
    replay = make(Replay, network, multi_head_stream, train_mb_size=50)
    train(replay, tasks[:1])
    means = []
    for seed in range(60):
        replay.buffer, replay.seen = (), 0
        torch.manual_seed(100 + seed)
        replay.buffer_size = 20 if seed % 2 else 80  # all of it in a step, and a part
        for task in (0, 1):
            replay.adapted_dataset = tasks[task].dataset
            replay.consolidate(tasks[task])
        replay.is_training, replay.experience = True, tasks[2]
        replay.adapted_dataset = tasks[2].dataset
        network.train()
        replay.model_adaptation()
        replay.make_train_dataloader(drop_last=False)
        total = 0.0
        for batch in replay.dataloader:
            replay.mbatch, size = batch, len(batch[0])
            replay._unpack_minibatch()
            replay.mb_output = replay.forward()
            total += replay.criterion().item() * size
        means.append(total / len(tasks[2].dataset))
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
        found.append(evaluate(strategy, tests[:-1])[1])
    assert found[0] < 30
    assert found[1] > 65


# each task alone


def test_neither_order_nor_number_of_the_tasks_matters(scenario, make_network):
    multi_head, stream, benchmark = scenario
    tasks, tests = list(benchmark.train_stream), list(benchmark.test_stream)
    found = []
    for order in ((0, 1, 2), (2, 0, 1), (1,)):
        alone = make(SingleTask, make_network(None, multi_head), stream)
        train(alone, [tasks[task] for task in order])
        found.append(predictions(alone, tests[1:2]))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_each_task_is_learnt_as_if_it_were_the_only_one(scenario, make_network):
    multi_head, stream, benchmark = scenario
    tasks, tests = list(benchmark.train_stream), list(benchmark.test_stream)
    alone = make(SingleTask, make_network(None, multi_head), stream)
    train(alone, tasks[:3])
    for task in range(3):
        naive = make(Naive, make_network(None, multi_head), stream)
        train(naive, tasks[task : task + 1])
        expected = predictions(naive, tests[task : task + 1])
        assert torch.equal(predictions(alone, tests[task : task + 1]), expected)


def test_the_networks_of_the_tasks_share_nothing(
    make_network, multi_head_stream, multi_head_benchmark
):
    alone = make(SingleTask, make_network(None), multi_head_stream)
    tests = list(multi_head_benchmark.test_stream)
    tasks = list(multi_head_benchmark.train_stream)
    before = predictions(alone, tests)
    train(alone, tasks[:1])
    first = predictions(alone, tests[:1])
    # Tasks to come are predicted as they were before any training.
    size = len(first)
    assert torch.equal(predictions(alone, tests)[size:], before[size:])
    train(alone, tasks[1:3])
    assert torch.equal(predictions(alone, tests[:1]), first)
    places = [p.data_ptr() for model in alone.models.values() for p in model.parameters()]
    assert len(places) == len(set(places))


def test_a_stock_optimiser_trains_every_network(
    make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network(None)
    optimizer = Adam(network.parameters(), lr=1e-3)
    alone = make(SingleTask, network, multi_head_stream, optimizer=optimizer, train_epochs=10)
    train(alone, list(multi_head_benchmark.train_stream)[:3])
    assert evaluate(alone, list(multi_head_benchmark.test_stream)[:3])[1] > 90


def test_in_the_middle_of_a_task_its_own_network_predicts(
    make_network, multi_head_stream, multi_head_benchmark
):
    alone = make(SingleTask, make_network(None), multi_head_stream, train_epochs=5, eval_every=1)
    (scores,) = (p for p in alone.evaluator.metrics if isinstance(p, Scores))
    found = []

    class Witness(SupervisedPlugin):
        def after_eval_exp(self, strategy, **kwargs):
            found.append(scores.values["nll"])

    alone.plugins.append(Witness())
    tests = multi_head_benchmark.test_stream[:1]
    alone.train(multi_head_benchmark.train_stream[0], eval_streams=[tests])
    assert found[4] < 0.8 * found[0]
