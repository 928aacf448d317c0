"""What a step is given: labels of its head, heads of its task, inputs that are numbers."""

import dataclasses

import pytest
import torch
from avalanche.benchmarks import tensors_benchmark
from avalanche.training.plugins import EvaluationPlugin
from failing import refuses
from torch.optim import Adam

from vcl_radial.data.streams import build_stream
from vcl_radial.data.tables import RegressionData, Split
from vcl_radial.errors import DataError, Diverged, UserError
from vcl_radial.integrations.avalanche import Strategy
from vcl_radial.integrations.avalanche.scores import Scores
from vcl_radial.likelihoods import Bernoulli, Categorical, Gaussian, OneHot
from vcl_radial.methods.bayes_linear import BayesLinear
from vcl_radial.methods.coreset_vcl import CoresetVCL
from vcl_radial.methods.ewc import EWC
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MLP
from vcl_radial.tracks.regression.splits import LaneSplits
from vcl_radial.training.loop import TaskLoop

X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1] * 4)
NAN, INF = float("nan"), float("inf")


def adam(module):
    return Adam(module.parameters(), lr=1e-2)


def made(kind=Naive, outputs=2, multi_head=False, **settings):
    posterior = "radial" if kind is VCL else "none"
    network = MLP(4, outputs, hidden=[8], multi_head=multi_head, posterior=posterior)
    return kind(network, **settings)


def step(method, batch, number=0, **task):
    method.begin_task(Task(number, points=8, batches=lambda: [batch], **task))
    return method.learn(batch, method.make_optimizer(adam))


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (LABELS + 2, "2 to 3"),
        (-LABELS, "-1 to 0"),
        (-100 * LABELS, "-100 to 0"),
        (LABELS.int(), r"int32 .*\[8\]"),
        (LABELS.float(), r"float32 .*\[8\]"),
        (LABELS.bool(), r"bool .*\[8\]"),
        (LABELS[:, None], r"int64 .*\[8, 1\]"),
        (torch.eye(2)[LABELS], r"float32 .*\[8, 2\]"),
    ],
)
def test_labels_that_a_head_does_not_have_are_named_with_its_size(labels, named):
    with pytest.raises(DataError, match=f"{named}: .* 2 outputs"):
        step(made(), Batch(X, labels))


@pytest.mark.parametrize(
    ("kind", "likelihood"), [(Naive, OneHot), (VCL, Categorical), (BayesLinear, Categorical)]
)
def test_whatever_the_method_its_likelihood_looks_at_the_labels(kind, likelihood):
    with refuses("2 to 3", kind=DataError):
        step(made(kind, likelihood=likelihood()), Batch(X, LABELS + 2))


@pytest.mark.parametrize(
    ("likelihood", "targets", "named"),
    [
        (Bernoulli, LABELS * 2, "2"),
        (Bernoulli, LABELS / 2, "0.5"),
        (Bernoulli, torch.full([8], NAN), "nan"),
        (Bernoulli, LABELS[:, None], r"\[8, 1\]"),
        (Gaussian, torch.full([8], NAN), "nan in 8 of 8"),
        (Gaussian, torch.tensor([0.0, INF] * 4), "inf in 4 of 8"),
        (Gaussian, torch.zeros(8, 1), r"\[8, 1\]"),
    ],
)
def test_targets_that_one_output_does_not_have_are_named(likelihood, targets, named):
    with pytest.raises(DataError, match=rf"{named}\b|{named}: "):
        step(made(outputs=1, likelihood=likelihood()), Batch(X, targets))


@pytest.mark.parametrize("likelihood", [Bernoulli, Gaussian])
def test_one_output_is_what_a_single_number_takes(likelihood):
    with refuses("one output", kind=DataError):
        step(made(outputs=8, likelihood=likelihood()), Batch(X, LABELS.float()))


@pytest.mark.parametrize(
    ("likelihood", "targets"),
    [
        (Bernoulli, LABELS),
        (Bernoulli, LABELS.bool()),
        (Bernoulli, LABELS.float()),
        (Gaussian, LABELS),
        (Gaussian, LABELS.double()),
    ],
)
def test_numbers_of_any_type_are_learned_as_the_same(likelihood, targets):
    torch.manual_seed(0)
    loss = step(made(outputs=1, likelihood=likelihood()), Batch(X, targets))
    torch.manual_seed(0)
    expected = step(made(outputs=1, likelihood=likelihood()), Batch(X, targets.float()))
    assert float(loss) == pytest.approx(float(expected))


@pytest.mark.parametrize("batch", [Batch(X, LABELS[:5]), Batch(X[:0], LABELS[:0])])
def test_a_batch_has_points_and_a_target_for_each(batch):
    with refuses("shape", kind=DataError):
        step(made(), batch)


@pytest.mark.parametrize("head", [1, LABELS, torch.tensor(1), True])
def test_points_of_another_head_are_refused_before_anything_moves(head):
    method = made(VCL, multi_head=True)
    before = {name: weight.clone() for name, weight in method.network.named_parameters()}
    with pytest.raises(UserError, match=r"head (1|True) .*\[0\]"):
        step(method, Batch(X, LABELS, head))
    after = dict(method.network.named_parameters())
    assert all(torch.equal(weight, after[name]) for name, weight in before.items() if name in after)
    assert "1" not in method.network.head.heads


@pytest.mark.parametrize("head", [1, LABELS])
def test_points_of_the_heads_of_a_task_train_those(head):
    method = made(multi_head=True)
    step(method, Batch(X, LABELS, head), heads=[0, 1])
    assert all(weight.grad is not None for weight in method.network.head.heads["1"].parameters())


def test_one_head_for_all_tasks_takes_any_number_of_a_task():
    assert step(made(), Batch(X, LABELS, 3)).isfinite()


def test_heads_are_one_number_or_one_for_each_point():
    with refuses("[8, 1]", kind=DataError):
        step(made(multi_head=True), Batch(X, LABELS, LABELS[:, None]), heads=[0, 1])


@pytest.mark.parametrize("kind", [Naive, VCL, BayesLinear])
@pytest.mark.parametrize(("value", "named"), [(NAN, "NaN"), (INF, "inf")])
def test_inputs_that_are_no_numbers_are_called_that(kind, value, named):
    x = X.clone()
    x[3, 1] = value
    method = made(kind)

    def learn():
        step(method, Batch(x, LABELS), number=1)
        method.end_task(method.task)

    with pytest.raises(DataError, match=f"task 2 .*{named} in 1 of 8 .*row 3"):
        learn()


def test_a_loss_that_is_no_number_is_laid_to_inputs_of_any_batch():
    x = X.clone()
    x[3, 1] = INF
    loop = TaskLoop(made(), Task(0, 8, lambda: [Batch(x, LABELS)]), adam)
    loop.loss = torch.tensor(NAN)
    with refuses("task 1", "inf", kind=DataError):
        loop.check_loss("in epoch 1")
    finite = TaskLoop(made(), Task(0, 8, lambda: [Batch(X, LABELS)]), adam)
    finite.loss = torch.tensor(NAN)
    with refuses("learning_rate", kind=Diverged):
        finite.check_loss("in epoch 1")


def test_a_method_whose_task_has_not_begun_does_not_learn():
    class BeginsNothing(Naive):
        def begin_task(self, task):
            pass

    with refuses("BeginsNothing", "begin_task"):
        step(made(BeginsNothing), Batch(X, LABELS))


class OnAGPU(torch.Tensor):
    """Labels that count how often somebody waits for them."""

    copies = 0
    is_cpu = False

    def cpu(self):
        OnAGPU.copies += 1
        return self.as_subclass(torch.Tensor)


def test_labels_on_a_gpu_are_looked_at_once_a_task():
    OnAGPU.copies = 0
    method = made()
    batch = Batch(X, LABELS.as_subclass(OnAGPU))
    step(method, batch)
    looks = OnAGPU.copies
    method.learn(batch, method.make_optimizer(adam))
    assert looks == OnAGPU.copies > 0
    step(method, batch)
    assert OnAGPU.copies == 2 * looks
    with refuses("2 to 3", kind=DataError):
        step(method, Batch(X, (LABELS + 2).as_subclass(OnAGPU)))


def in_avalanche(x, y, test_x=None):
    """Learn a task of these points in Avalanche, and predict it or these other inputs."""
    test = [(x if test_x is None else test_x, y)]
    benchmark = tensors_benchmark(
        train_tensors=[(x, y)],
        test_tensors=test,
        task_labels=[0],
        complete_test_set_only=False,
    )
    evaluator = EvaluationPlugin(Scores(), loggers=[])
    strategy = Strategy(
        made(), optimizer=adam, train_mb_size=4, eval_mb_size=8, evaluator=evaluator
    )
    (experience,) = benchmark.train_stream
    strategy.train(experience)
    strategy.eval(benchmark.test_stream)


def test_avalanche_refuses_the_same_labels_and_inputs():
    nan = X.clone()
    nan[3, 1] = NAN
    in_avalanche(X, LABELS)
    with refuses("labels", kind=DataError):
        in_avalanche(X, LABELS + 1)
    with refuses("-100", kind=DataError):
        in_avalanche(X, -100 * LABELS)
    with refuses("task 1", "NaN in 1 of", kind=DataError):
        in_avalanche(nan, LABELS)
    with refuses("experience 1", "NaN in 1 of 8", kind=DataError):
        in_avalanche(X, LABELS, nan)


def test_a_stream_of_inputs_that_are_no_numbers_is_refused_where_it_is_made():
    stream = build_stream({"kind": "split", "dataset": "digits"})
    x = stream.x.clone()
    x[5, 2] = NAN
    with refuses("finite"):
        dataclasses.replace(stream, x=x)


def test_tables_of_inputs_that_are_no_numbers_are_called_that():
    x = torch.randn(20, 2).double()
    x[3, 1] = NAN
    split = Split(torch.arange(15), torch.arange(15, 20))
    data = RegressionData("own", x, x[:, 0], (split,))
    with refuses("own", kind=DataError):
        LaneSplits(data, [0])


def test_points_of_another_head_in_the_data_of_a_task_are_refused_where_it_ends():
    method = EWC(MLP(4, 2, hidden=[8], posterior="none"))
    whole = Batch(X, LABELS, 1)
    method.begin_task(Task(0, 8, lambda: [Batch(X, LABELS)], heads=[1]))  # of head 0 by default
    method.learn(whole, method.make_optimizer(adam))
    with refuses("head 0"):
        method.end_task(method.task)


@pytest.mark.parametrize("fault", ["label", "input"])
def test_a_coreset_is_looked_at_where_it_is_learned(fault):
    method = CoresetVCL(MLP(4, 2, hidden=[8], posterior="gaussian"), coreset_size=3)
    x, y = X.clone(), LABELS.clone()
    rows = method.select(lambda: Batch(x, y, 0))
    column, value = (0, NAN) if fault == "input" else (1, -100)
    method.coreset[column][:] = value
    method.begin_task(Task(0, 5, lambda: [Batch(x, y, 0).at(rows)]))
    method.learn(Batch(x, y, 0).at(rows), method.make_optimizer(adam))
    with pytest.raises(DataError):
        method.end_task(method.task)
