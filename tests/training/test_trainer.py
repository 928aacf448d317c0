"""The trainer: what it does with tasks, epochs, seeds, modes and the optimiser."""

import copy
import io
import itertools
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from scenarios import copies, digits, network
from torch.optim import SGD
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    default_collate,
)

import vcl_radial as vr
from vcl_radial.errors import DataError, Diverged, UserError
from vcl_radial.methods.ewc import EWC
from vcl_radial.methods.joint import Joint
from vcl_radial.methods.ml_init_vcl import MLInitVCL
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.replay import Replay
from vcl_radial.methods.si import SI
from vcl_radial.methods.single_task import SingleTask
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MultiHead
from vcl_radial.training.source import Tasks, TaskSource, TensorTask
from vcl_radial.training.trainer import Trainer


def trainer(kind=Naive, posterior=None, *, multi_head=True, settings=(), **keys):
    torch.manual_seed(0)
    method = kind(network(posterior, multi_head=multi_head), **dict(settings))
    return Trainer(method, **{"learning_rate": 1e-2, "batch_size": 20, **keys})


def weights(made):
    return copies(made.method.network)


def assert_same(one, two):
    assert one.keys() == two.keys()
    for name, weight in one.items():
        assert torch.equal(weight, two[name]), name


def assert_equal_states(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert_equal_states(value, other[key])
    elif isinstance(one, list | tuple):
        for value, same in zip(one, other, strict=True):
            assert_equal_states(value, same)
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    else:
        assert one == other


def stored(made):
    buffer = io.BytesIO()
    torch.save(made.state_dict(), buffer)
    return torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)


def test_a_stream_is_learnt_task_by_task():
    stream = vr.benchmark("split-digits-multi-head")
    torch.manual_seed(0)
    made = vr.Trainer(
        vr.VCL(vr.MLP(64, 2, hidden=[50], posterior="radial")), learning_rate=3e-3, epochs=10
    )
    made.fit(stream)
    assert made.done == len(stream)
    for task in stream:
        predicted = made.method.predict(task.test[0], task.head).argmax(1)
        assert (predicted == task.test[1]).float().mean() > 0.85


def test_arrays_and_datasets_give_the_points_of_tensors():
    x, y = digits("single").inputs(0, "train"), digits("single").labels(0, "train")
    forms = [(x, y)], [(x.double().numpy(), y.numpy())], [TensorDataset(x, y)]
    tensors, arrays, datasets = (Tasks(form, batch_size=len(y)).tasks()[0] for form in forms)
    for task in (arrays, datasets):
        for one, other in zip(tensors.batches(), task.batches(), strict=True):
            assert torch.equal(one.x, other.x)
            assert torch.equal(one.y, other.y)
    rows = torch.tensor([5, 2])
    for task in (tensors, arrays, datasets):
        (batch,) = task.select(rows).batches()
        assert torch.equal(batch.x, x[rows])
        assert len(task.select(rows)) == 2


def test_a_loader_trains_as_its_dataset_and_keeps_its_batches():
    x, y = digits("single").inputs(0, "train"), digits("single").labels(0, "train")
    data = TensorDataset(x, y)
    made = [trainer(multi_head=False).fit([form]) for form in (data, DataLoader(data, 20, True))]
    assert_same(*map(weights, made))
    pairs = DataLoader(data, 8, collate_fn=lambda items: tuple(default_collate(items)[:2]))
    (task,) = Tasks([pairs]).tasks()
    assert torch.equal(torch.cat([batch.x for batch in task.epoch(0)]), x)  # in its order
    assert torch.equal(torch.cat([batch.x for batch in task.batches()]), x)
    assert task.select(torch.arange(16)).epoch_steps == 2
    with pytest.raises(UserError):  # the label of the head would be lost
        trainer(Joint).fit([pairs, pairs])


@pytest.mark.parametrize("kind", [Naive, Joint])
@pytest.mark.parametrize("form", [list, lambda pairs: [TensorDataset(*pair) for pair in pairs]])
def test_in_a_network_with_a_head_for_each_task_each_task_has_its_head(kind, form):
    pairs = [(torch.randn(40, 64), torch.arange(40) % 2) for _ in range(2)]
    made = trainer(kind).fit(form(pairs))
    (multi,) = (m for m in made.method.network.modules() if isinstance(m, MultiHead))
    assert list(multi.heads) == ["0", "1"]
    assert any(weight.grad is not None for weight in multi.head(1).parameters())
    single = trainer(kind, multi_head=False).fit(form(pairs))
    assert set(single.method.heads) == {0}


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("form", ["tensors", "dataset"])
def test_an_epoch_has_every_point_once_but_for_a_smaller_last_batch(form, drop_last):
    x = torch.arange(10.0)[:, None]
    points = (x, x[:, 0].long()) if form == "tensors" else TensorDataset(x, x[:, 0].long())
    (task,) = Tasks([points], batch_size=4, drop_last=drop_last).tasks()
    sizes = [len(batch.y) for batch in task.epoch(0)]
    assert sizes == ([4, 4] if drop_last else [4, 4, 2])
    assert task.epoch_steps == len(sizes)
    if not drop_last:
        assert sorted(torch.cat([batch.y for batch in task.epoch(1)]).tolist()) == [*range(10)]
    assert torch.equal(torch.cat([batch.x for batch in task.batches()]), x)


class Endless(IterableDataset):
    def __iter__(self):
        return itertools.repeat((torch.ones(2), 0))


@pytest.mark.parametrize(
    ("tasks", "kind"),
    [
        ([(torch.ones(3, 2), torch.ones(2))], DataError),
        ([(torch.ones(0, 2), torch.ones(0))], DataError),
        ([(torch.tensor(1.0), torch.tensor(1))], DataError),
        ([TensorDataset(torch.ones(0, 2), torch.ones(0))], DataError),
        ([([[1.0, 2.0], [3.0]], [0, 1])], DataError),
        ([(np.array(["a", "b"]), [0, 1])], DataError),
        (["digits"], UserError),
        ([Endless()], UserError),
        ([DataLoader(Endless(), 2)], UserError),
        ([DataLoader(TensorDataset(torch.ones(4, 2)), None)], UserError),
        ([DataLoader(TensorDataset(torch.ones(4, 2)), 2, sampler=[1, 2])], UserError),
    ],
)
def test_what_is_no_task_is_refused(tasks, kind):
    with pytest.raises(kind, match="task 1"):
        Tasks(tasks)


@pytest.mark.parametrize(
    "tasks",
    [
        [],
        None,
        "digits",
        TensorDataset(torch.ones(3, 2), torch.ones(3)),
        DataLoader(TensorDataset(torch.ones(3, 2), torch.ones(3))),
    ],
)
def test_what_is_no_list_of_tasks_is_refused(tasks):
    with pytest.raises(UserError, match="task"):
        Tasks(tasks)


@pytest.mark.parametrize("heads", [[0], [0, 1, 2], [0, -1], [0, "a"], [[0], [1]]])
def test_each_task_needs_a_head(heads):
    pair = torch.ones(3, 2), torch.ones(3).long()
    with pytest.raises(UserError) as refused:
        Tasks([pair, pair], heads=heads)
    assert refused.value.key == "heads"


@pytest.mark.parametrize("item", [torch.ones(64), {"x": torch.ones(64)}, (torch.ones(64), "cat")])
def test_an_item_of_a_dataset_is_an_input_and_a_target(item):
    with pytest.raises(DataError, match="task 1"):
        trainer().fit([Listed([item] * 3)])


class Listed(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("form", ["arrays", "dataset"])
def test_inputs_of_any_floating_point_type_are_learnt(dtype, form):
    x, y = np.ones((30, 64), dtype), np.zeros(30, np.int64)
    task = (x, y) if form == "arrays" else Listed(list(zip(x, y, strict=True)))
    assert trainer().fit([task]).done == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_, np.complex64])
def test_inputs_of_another_type_are_refused_by_name(dtype):
    x, y = np.ones((30, 64), dtype), np.zeros(30, np.int64)
    with pytest.raises(DataError, match=np.dtype(dtype).name):
        trainer().fit([(x, y)])


@pytest.mark.parametrize(
    ("kind", "posterior", "keys"),
    [
        (VCL, "radial", {}),
        (SI, None, {}),
        (EWC, None, {"schedule": "cosine"}),
        (Replay, None, {"settings": {"buffer_size": 10}}),
        (MLInitVCL, "gaussian", {"settings": {"ml_epochs": 1}, "rates_by": "step"}),
        (SingleTask, None, {}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_training_that_stops_after_any_epoch_ends_with_the_same_bits(kind, posterior, keys):
    stream, keys = digits("multi").first(2), {"epochs": 2, **keys}
    whole = trainer(kind, posterior, **keys).fit(stream)
    state, epochs = None, 0
    while state is None or state["done"] < 2:
        torch.rand(3)  # earlier draws do not matter
        part = trainer(kind, posterior, **keys)
        if state is not None:
            part.load_state_dict(state)
        next(part.steps(stream))
        state, epochs = stored(part), epochs + 1
    assert epochs == 4
    assert_same(weights(part), weights(whole))
    for one, other in zip(part.states, whole.states, strict=True):
        assert_equal_states(one, other)


@pytest.mark.parametrize("kind", [VCL, MLInitVCL])
def test_a_later_call_continues_within_the_task(kind):
    stream = digits("multi").first(2)
    whole = trainer(kind, "gaussian", epochs=2).fit(stream)
    made = trainer(kind, "gaussian", epochs=2)
    next(made.steps(stream))
    made.fit(stream)
    assert_same(weights(made), weights(whole))
    assert len(made.history) == 4


def test_an_interrupted_epoch_is_repeated():
    steps = iter([None, None, KeyboardInterrupt])

    def interrupt():
        if error := next(steps, None):
            raise error

    made = trainer(epochs=2, on_step=interrupt)
    pair = torch.randn(40, 64), torch.zeros(40).long()  # two steps
    with pytest.raises(KeyboardInterrupt):
        made.fit([pair])
    made.fit([pair])
    assert [epoch.epoch for epoch in made.history] == [1, 2]


def test_an_interrupt_while_a_task_ends_costs_no_epoch():
    stream = digits("multi").first(2)
    whole = trainer(VCL, "gaussian", epochs=2).fit(stream)
    made = trainer(VCL, "gaussian", epochs=2)
    end_task, interrupts = made.method.end_task, iter([KeyboardInterrupt])

    def interrupted(task):
        if error := next(interrupts, None):
            raise error
        end_task(task)

    made.method.end_task = interrupted
    with pytest.raises(KeyboardInterrupt):
        made.fit(stream)
    made.fit(stream)
    assert [epoch.epoch for epoch in made.history] == [1, 2, 1, 2]
    assert_same(weights(made), weights(whole))


def test_a_state_replaces_the_task_in_training():
    stream = digits("multi").first(2)
    made = trainer(epochs=2)
    state = None
    for epoch in made.steps(stream):
        if epoch.epoch == 1 and epoch.task == 0:
            state = stored(made)
    end = weights(made)
    other = trainer(epochs=2)
    next(other.steps(stream))
    other.load_state_dict(state)
    assert other.loop is None
    assert_same(weights(other.fit(stream)), end)


@pytest.mark.parametrize("state", [None, {}, {"network": {}}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(UserError, match="state_dict"):
        trainer().load_state_dict(state)


def test_a_trainer_is_copied_between_tasks_alone():
    stream = digits("multi").first(2)
    made = trainer(VCL, "radial")
    steps = made.steps(stream)
    next(steps)
    copied = copy.deepcopy(made)
    assert_same(weights(copied.fit(stream)), weights(made.fit(stream)))
    within = trainer(epochs=2)
    next(within.steps(stream))
    with pytest.raises(UserError, match="state_dict"):
        copy.deepcopy(within)


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    made = trainer(VCL, "gaussian")
    torch.set_rng_state(before)
    made.fit(digits("multi").first(2))
    assert torch.equal(torch.get_rng_state(), before)


def test_seeds_decide_and_differ():
    ends = [
        weights(trainer(VCL, "gaussian", seed=seed).fit(digits("multi").first(1)))
        for seed in (1, 1, 2)
    ]
    assert_same(ends[0], ends[1])
    assert any(not torch.equal(weight, ends[2][name]) for name, weight in ends[0].items())


def test_a_task_with_one_seed_can_be_stored_at_its_end_alone():
    made = trainer(epochs=3, seed=lambda purpose, task, epoch: task if purpose == "task" else None)
    ended = [(epoch.task, epoch.epoch) for epoch in made.steps(digits("multi").first(2))]
    assert ended == [(0, 3), (1, 3)]


def test_the_number_of_steps_replaces_that_of_epochs():
    steps = []
    made = trainer(steps=7, on_step=lambda: steps.append(made.loop.task.steps))
    x, y = torch.randn(50, 64), torch.zeros(50).long()
    made.fit(Tasks([(x, y)], batch_size=20))
    assert steps == [7] * 7
    assert made.epoch == 3  # of 3, 3 and 1 batches


@pytest.mark.parametrize("by", ["epoch", "step"])
def test_the_schedule_sets_the_rates_of_epochs_or_of_steps(by):
    rates = []
    made = trainer(
        optimizer=lambda net: SGD(net.parameters(), lr=1.0),
        epochs=2,
        schedule=lambda done: 1 - done,
        rates_by=by,
        on_step=lambda: rates.append(made.loop.optimizer.param_groups[0]["lr"]),
    )
    made.fit(Tasks([(torch.randn(40, 64), torch.zeros(40).long())], batch_size=10))
    steps = [0, 1 / 8, 2 / 8, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8]
    assert rates == pytest.approx([1 - (s if by == "step" else s // 0.5 * 0.5) for s in steps])


def test_only_the_selected_points_are_trained_on():
    class Odd(Naive):
        def select(self, points):
            return torch.arange(1, len(points().y), 2)

        def begin_task(self, task):
            super().begin_task(task)
            assert task.points == 5
            assert [len(batch.y) for batch in task.batches()] == [5]

    trainer(Odd).fit([(torch.randn(10, 64), torch.zeros(10).long())])


def test_a_method_that_needs_the_whole_stream_gets_it_at_once():
    stream = digits("multi").first(3)
    made = trainer(Joint).fit(stream)
    assert made.done == 1
    assert list(made.method.heads) == [0, 1, 2]


def test_modes_are_the_trainers():
    modes = []

    class Looks(Naive):
        def begin_task(self, task):
            super().begin_task(task)
            modes.append(("begin", self.network.training))

        def loss(self, batch, outputs):
            modes.append(("step", self.network.training))
            return super().loss(batch, outputs)

        def end_task(self, task):
            modes.append(("end", self.network.training))

    made = trainer(Looks)
    made.method.network.eval()
    made.fit([(torch.randn(30, 64), torch.zeros(30).long())])
    assert modes == [("begin", False), ("step", True), ("step", True), ("end", False)]


class Validated(TaskSource):
    """One task, whose validation scores are given."""

    has_validation = True

    def __init__(self, scores):
        self.scores = iter(scores)

    def tasks(self):
        return Tasks([(torch.randn(30, 64), torch.zeros(30).long())]).tasks()

    def validate(self, method, task):
        return next(self.scores)


def test_the_best_epoch_is_kept():
    ends = []
    made = trainer(epochs=4, select="best", on_epoch=lambda epoch: ends.append(weights(made)))
    made.fit(Validated([1.0, 3.0, 3.0, 2.0]))
    assert (made.best_epoch, made.best_score) == (2, 3.0)
    assert_same(weights(made), ends[1])
    assert not all(torch.equal(w, ends[3][name]) for name, w in ends[1].items())


def test_patience_ends_a_task():
    made = trainer(epochs=100, patience=2).fit(Validated([1.0, 2.0, 1.0, 1.0, 9.0]))
    assert [epoch.validation for epoch in made.history] == [1.0, 2.0, 1.0, 1.0]


def test_a_task_can_be_ended_early():
    made = trainer(epochs=5)
    for epoch in made.steps(digits("multi").first(2)):
        if epoch.epoch == 2:
            made.end_task()
    assert [(epoch.task, epoch.epoch) for epoch in made.history] == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_loss_nll_and_penalty_of_an_epoch_belong_together():
    made = trainer(VCL, "gaussian", settings={"kl_weight": 0.5})
    made.fit([(torch.randn(30, 64), torch.zeros(30).long())])
    (epoch,) = made.history
    assert epoch.penalty > 0
    assert epoch.loss == pytest.approx(epoch.nll + 0.5 * epoch.penalty / 30)


@pytest.mark.parametrize("learning_rate", [1e-2, 1e-30])
def test_samples_one_by_one_give_the_gradient_of_all_at_once(learning_rate):
    """Without noise each sample has the same gradient, and the sum is that of their mean loss."""
    ends = []
    for one_by_one in (False, True):
        made = trainer(
            VCL,
            "gaussian",
            optimizer="sgd",
            learning_rate=learning_rate,
            settings={"train_samples": 3},
        )
        made.method.sample_by_sample = one_by_one
        with torch.no_grad():
            for name, weight in made.method.network.named_parameters():
                if name.endswith("rho"):
                    weight.fill_(-30.0)
        ends.append(made.fit([(torch.randn(30, 64), torch.zeros(30).long())]))
    for name, weight in weights(ends[0]).items():
        torch.testing.assert_close(weight, weights(ends[1])[name])


def test_a_loss_that_is_not_finite_names_epoch_and_task():
    made = trainer(optimizer="sgd", learning_rate=1e30, epochs=3)
    with pytest.raises(Diverged, match=r"in epoch \d of task 1; lower learning_rate"):
        made.fit([(torch.randn(90, 64), torch.randint(2, (90,)))])


def test_inputs_that_are_not_finite_are_named_instead():
    x = torch.randn(30, 64)
    x[3, 0] = float("nan")
    with pytest.raises(DataError, match="task 1"):
        trainer().fit([(x, torch.zeros(30).long())])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optimizer", "lion"),
        ("optimizer", SGD),
        ("learning_rate", -1.0),
        ("learning_rate", float("nan")),
        ("epochs", 0),
        ("epochs", 2.5),
        ("steps", 0),
        ("batch_size", 0),
        ("schedule", "steep"),
        ("rates_by", "task"),
        ("clip", -1.0),
        ("seed", -1),
        ("seed", 1.5),
        ("select", "first"),
        ("patience", 0),
        ("inside", nullcontext()),
        ("fit_options", {}),
        ("on_step", 3),
    ],
)
def test_an_impossible_value_is_refused_before_training(name, value):
    with pytest.raises(UserError) as refused:
        trainer(**{name: value})
    assert refused.value.key == name


def test_a_function_of_epochs_gives_at_least_one():
    with pytest.raises(UserError) as refused:
        trainer(epochs=lambda task: task).fit([(torch.ones(3, 64), torch.zeros(3).long())])
    assert refused.value.key == "epochs"


@pytest.mark.parametrize("keys", [{"select": "best"}, {"patience": 2}])
def test_a_best_epoch_needs_validation(keys):
    with pytest.raises(UserError, match="has_validation"):
        trainer(**keys).fit([(torch.ones(3, 64), torch.zeros(3).long())])


@pytest.mark.parametrize("method", [VCL, "vcl", torch.nn.Linear(2, 2)])
def test_what_is_no_method_is_refused(method):
    with pytest.raises(UserError, match="no method"):
        Trainer(method)


def test_targets_of_numbers_are_learnt_too():
    torch.manual_seed(0)
    x = torch.rand(200, 1)
    y = 3 * x[:, 0] - 1
    from vcl_radial.likelihoods import Gaussian

    method = Naive(
        vr.MLP(1, 1, hidden=[20], multi_head=False, posterior=None), likelihood=Gaussian()
    )
    Trainer(method, learning_rate=1e-2, epochs=60).fit([(np.asarray(x), np.asarray(y))])
    assert (method.predict(x).mean.mean(0) - y).abs().mean() < 0.1


def test_a_clipped_step_is_no_longer_than_the_limit():
    made = trainer(optimizer="sgd", learning_rate=1.0, clip=1e-3)
    before = copy.deepcopy(weights(made))
    made.fit([(torch.randn(20, 64), torch.zeros(20).long())])
    moved = [
        (w - before[name]).square().sum() for name, w in weights(made).items() if name in before
    ]
    assert 0 < sum(moved) <= 1.01e-6


def test_a_tensor_task_keeps_heads_of_its_rows():
    task = TensorTask("t", Tasks([(torch.ones(4, 2), torch.zeros(4))]).tasks()[0].points, (0,), 2)
    assert [batch.task for batch in task.epoch(0)] == [0, 0]
