from itertools import pairwise

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from learners import make, predictions, score, train, weights
from torch.optim import SGD, Adam, AdamW

from vcl_radial.errors import UserError
from vcl_radial.nn import MLP
from vcl_radial.nn.weights import PosteriorBlock
from vcl_radial.strategies import Scores
from vcl_radial.strategies.coreset_vcl import CoresetVCL


class Seen(SupervisedPlugin):
    """All training inputs, in the order in which they came."""

    def __init__(self):
        super().__init__()
        self.batches = []

    def before_training_iteration(self, strategy, **kwargs):
        self.batches.append(strategy.mb_x.clone())


def as_set(x):
    return {tuple(row) for row in x.tolist()}


@pytest.mark.parametrize("with_tensors", [True, False])
@pytest.mark.parametrize("selection", ["random", "k-centre"])
def test_the_carried_posterior_never_sees_the_coreset(
    selection, with_tensors, make_network, multi_head_stream, multi_head_benchmark
):
    stream = multi_head_stream if with_tensors else None
    options = {"coreset_size": 15, "selection": selection, "coreset_epochs": 1}
    seen = Seen()
    vcl = make(CoresetVCL, make_network(), stream, plugins=[seen], **options)
    everything = []
    for task, experience in enumerate(list(multi_head_benchmark.train_stream)[:2]):
        vcl.train(experience, eval_streams=[])
        x, y, tasks = vcl.coreset
        assert tasks.tolist() == [t for t in range(task + 1) for _ in range(15)]
        trained = torch.cat(seen.batches)
        everything += [experience.dataset[i] for i in range(len(experience.dataset))]
        assert len(trained) + len(x) == len(everything)
        assert not as_set(trained) & as_set(x)
        assert as_set(trained) | as_set(x) == as_set(torch.stack([each[0] for each in everything]))
        labels = {tuple(inputs.tolist()): label for inputs, label, _ in everything}
        assert y.tolist() == [labels[tuple(row)] for row in x.tolist()]


def test_the_start_at_the_likelihood_is_that_of_ml_init_on_what_the_coreset_leaves(
    make_network, multi_head_stream, multi_head_benchmark
):
    ends = {}
    for ml_epochs in (None, 0, 3):
        network, seen = make_network("gaussian"), Seen()
        options = {} if ml_epochs is None else {"ml_epochs": ml_epochs}
        vcl = make(
            CoresetVCL, network, multi_head_stream, coreset_epochs=0, plugins=[seen], **options
        )
        train(vcl, list(multi_head_benchmark.train_stream)[:1])
        ends[ml_epochs] = weights(vcl)
        assert not as_set(torch.cat(seen.batches)) & as_set(vcl.coreset[0])
    assert torch.equal(ends[None], ends[0])
    assert not torch.equal(ends[3], ends[0])


def test_fine_tuning_touches_the_prediction_alone(scenario, make_network):
    multi_head, stream, benchmark = scenario
    tasks = list(benchmark.train_stream)[:2]
    ends, predicted = [], []
    for epochs in (0, 10):
        vcl = make(
            CoresetVCL,
            make_network("gaussian", multi_head, initial_noise=0.05),
            stream,
            coreset_epochs=epochs,
        )
        train(vcl, tasks)
        ends.append(weights(vcl))
        predicted.append(predictions(vcl, benchmark.test_stream[:2]))
        if epochs == 0:
            vcl.method.coreset = ()  # and now the carried posterior predicts
            assert torch.equal(predictions(vcl, benchmark.test_stream[:2]), predicted[0])
    assert torch.equal(*ends)
    assert not torch.allclose(*predicted, atol=0.01)


def test_a_coreset_brings_back_what_one_head_for_all_has_forgotten(
    make_network, single_head_stream, single_head_benchmark
):
    forgotten = []
    for epochs in (0, 50):
        network = make_network("gaussian", False, initial_noise=0.1)
        vcl = make(
            CoresetVCL,
            network,
            single_head_stream,
            train_epochs=3,
            coreset_epochs=epochs,
            optimizer=lambda model: Adam(model.parameters(), lr=3e-3),
        )
        train(vcl, list(single_head_benchmark.train_stream)[:2])
        forgotten.append(score(vcl, single_head_benchmark.test_stream[:1], "nll"))
    assert forgotten[1] < 0.5 * forgotten[0]


def test_the_prior_of_the_fine_tuning_is_the_carried_posterior(
    make_network, multi_head_stream, multi_head_benchmark
):
    """Held against it hard enough, the prediction does not leave it, and with little it does."""
    predicted = []
    for weight in (0.0, 1.0, 1e5):
        network = make_network("gaussian", initial_noise=0.05)
        vcl = make(CoresetVCL, network, multi_head_stream, coreset_epochs=0)
        train(vcl, list(multi_head_benchmark.train_stream)[:1])
        carried = predictions(vcl, multi_head_benchmark.test_stream[:1])
        vcl.method.coreset_epochs, vcl.penalty_weight, vcl.method._prediction = 30, weight, None
        moved = predictions(vcl, multi_head_benchmark.test_stream[:1]) - carried
        predicted.append(moved.abs().mean().item())
    assert predicted[0] > 1.5 * predicted[1] > 0
    assert predicted[2] < 0.05 * predicted[0]


def test_fine_tuning_leaves_point_heads_as_training_left_them(
    make_network, multi_head_stream, multi_head_benchmark
):
    """No prior holds them to it."""
    network = MLP(64, 2, hidden=(32,), posterior="gaussian", point_heads=True)
    vcl = make(CoresetVCL, network, multi_head_stream, coreset_epochs=10)
    train(vcl, list(multi_head_benchmark.train_stream)[:2])
    trained = dict(vcl.network.named_parameters())
    tuned = dict(vcl.method._prediction.named_parameters())
    stayed = {name for name, tensor in trained.items() if torch.equal(tuned[name], tensor)}
    assert stayed == {name for name in trained if "head" in name}
    assert all(tensor.requires_grad for tensor in trained.values())


def test_the_divergence_counts_once_for_the_whole_coreset(
    make_network, multi_head_stream, multi_head_benchmark
):
    """Every point twice is as much more to learn from as the divergence with half its weight.

    With next to no noise, for how many numbers the order of the points takes moves all draws.
    """
    network = make_network("gaussian", initial_noise=1e-6)
    vcl = make(CoresetVCL, network, multi_head_stream, coreset_epochs=0, train_mb_size=10_000)
    train(vcl, list(multi_head_benchmark.train_stream)[:1])
    vcl.method.coreset_epochs, once = 10, vcl.coreset

    def moved(times, weight):
        vcl.method.coreset = tuple(torch.cat([column] * times) for column in once)
        vcl.penalty_weight = weight
        tuned = dict(vcl.method._fine_tuned().named_parameters())
        return torch.cat(
            [
                (tuned[name] - weight).flatten().detach()
                for name, weight in vcl.network.named_parameters()
                if name.endswith("mean")
            ]
        )

    free, held, twice = moved(1, 0.0), moved(1, 1e-11), moved(2, 2e-11)
    assert (held - free).norm() > 0.05 * free.norm()
    assert (twice - held).norm() < 1e-2 * (held - free).norm()


def blocks(model):
    return [module for module in model.modules() if isinstance(module, PosteriorBlock)]


def test_a_prediction_in_the_middle_of_a_task_is_fine_tuned_too(
    make_network, multi_head_stream, multi_head_benchmark
):
    """The copy is trained by its own means while the model is in the middle of a step."""
    distances = []

    class Witness(SupervisedPlugin):
        def after_training_epoch(self, strategy, **kwargs):
            tuned = strategy.method._fine_tuned()
            pairs = zip(tuned.parameters(), strategy.network.parameters(), strict=True)
            distances.append(sum((a - b).abs().sum().item() for a, b in pairs))
            for copied, block in zip(blocks(tuned), blocks(strategy.model), strict=True):
                assert torch.equal(copied.prior.mean, block.mean)
                torch.testing.assert_close(copied.prior.scale, block.scale())

    vcl = make(
        CoresetVCL,
        make_network("gaussian"),
        multi_head_stream,
        coreset_epochs=5,
        plugins=[Witness()],
    )
    train(vcl, list(multi_head_benchmark.train_stream)[:1])
    assert distances[0] > 1


def test_predictions_in_the_middle_of_a_task_keep_up_with_training(
    make_network, multi_head_stream, multi_head_benchmark
):
    scores, found = Scores(), []

    class Witness(SupervisedPlugin):
        def after_eval_exp(self, strategy, **kwargs):
            found.append(scores.values["nll"])

    vcl = make(
        CoresetVCL,
        make_network("gaussian"),
        multi_head_stream,
        coreset_epochs=1,
        train_epochs=5,
        eval_every=1,
        evaluator=EvaluationPlugin(scores),
    )
    vcl.plugins.append(Witness())  # after the evaluator
    tests = multi_head_benchmark.test_stream[:1]
    vcl.train(multi_head_benchmark.train_stream[0], eval_streams=[tests])
    assert all(later < 0.95 * sooner for sooner, later in pairwise(found[:5]))


@pytest.mark.parametrize("kind", [Adam, AdamW, SGD])
def test_a_stock_optimiser_fine_tunes_too(
    kind, make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network("gaussian", initial_noise=0.05)
    vcl = make(
        CoresetVCL,
        network,
        multi_head_stream,
        optimizer=kind(network.parameters(), lr=0.05 if kind is SGD else 1e-3),
        coreset_epochs=30,
    )
    train(vcl, list(multi_head_benchmark.train_stream)[:1])
    tuned = predictions(vcl, multi_head_benchmark.test_stream[:1])
    vcl.method.coreset = ()
    carried = predictions(vcl, multi_head_benchmark.test_stream[:1])
    assert not torch.allclose(tuned, carried, atol=0.01)


def test_a_coreset_as_large_as_a_task_is_refused(
    make_network, multi_head_stream, multi_head_benchmark
):
    vcl = make(CoresetVCL, make_network(), multi_head_stream, coreset_size=5000)
    with pytest.raises(UserError, match=r"coreset_size = 5000 must be at least 1 and leave"):
        train(vcl, list(multi_head_benchmark.train_stream)[:1])


def grouped(network):
    """Means are trained, and scales are not."""
    parameters = dict(network.named_parameters())
    means = [p for name, p in parameters.items() if name.endswith("mean")]
    rhos = [p for name, p in parameters.items() if name.endswith("rho")]
    return Adam([{"params": means}, {"params": rhos, "lr": 0.0}], lr=1e-2)


def test_fine_tuning_keeps_the_groups_of_a_stock_optimiser(
    make_network, single_head_stream, single_head_benchmark
):
    network = make_network("gaussian", False)
    vcl = make(
        CoresetVCL,
        network,
        single_head_stream,
        optimizer=grouped(network),
        coreset_epochs=3,
        train_epochs=2,
        schedule=lambda share: 1 - share,
    )
    train(vcl, list(single_head_benchmark.train_stream)[:1])
    for tuned, block in zip(blocks(vcl.method._prediction), blocks(vcl.model), strict=True):
        assert torch.equal(tuned.rho, block.rho)
        assert not torch.equal(tuned.mean, block.mean)
    fresh = vcl.method._optimizer_for(vcl.method._prediction)
    assert [group["lr"] for group in fresh.param_groups] == [1e-2, 0.0]
    assert not fresh.state
    held = {id(p) for group in fresh.param_groups for p in group["params"]}
    assert held == {id(p) for p in vcl.method._prediction.parameters()}


def test_fine_tuning_has_the_schedule_of_training_and_a_rate_of_its_own(
    make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network("gaussian")
    vcl = make(
        CoresetVCL,
        network,
        multi_head_stream,
        optimizer=lambda model: Adam(model.parameters(), lr=1e-2),
        coreset_epochs=1,
        coreset_rate=0.1,
        schedule=lambda share: float(share == 0),  # steps in the first of its epochs alone
    )
    train(vcl, list(multi_head_benchmark.train_stream)[:1])
    tests = multi_head_benchmark.test_stream[:1]
    predicted = []
    for epochs in (1, 4, 0):
        vcl.method.coreset_epochs, vcl.method._prediction = epochs, None
        predicted.append(predictions(vcl, tests))
    assert torch.equal(predicted[0], predicted[1])
    assert not torch.equal(predicted[0], predicted[2])
    assert [group["lr"] for group in vcl.method._optimizer_for(vcl.network).param_groups] == [1e-3]


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_named(rate, make_network, multi_head_stream):
    with pytest.raises(UserError, match=r"options\.coreset_rate = .* must be above 0 and finite"):
        make(CoresetVCL, make_network(), multi_head_stream, coreset_rate=rate)


def test_with_a_stock_optimiser_a_loaded_state_predicts_the_same(
    make_network, multi_head_stream, multi_head_benchmark
):
    """Its heads are none of those that the optimiser was made for."""
    strategies = []
    for _ in range(2):
        network = make_network("gaussian")
        optimizer = Adam(network.parameters(), lr=1e-2)
        options = {"optimizer": optimizer, "coreset_epochs": 3}
        strategies.append(make(CoresetVCL, network, multi_head_stream, **options))
    first, second = strategies
    train(first, list(multi_head_benchmark.train_stream)[:2])
    second.load_state_dict(first.state_dict())
    tests = multi_head_benchmark.test_stream[:2]
    assert torch.equal(predictions(first, tests), predictions(second, tests))
