import copy
from itertools import pairwise

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch.optim import SGD, Adam

from vcl_radial.errors import UserError
from vcl_radial.nn import MLP, PointLinear, PosteriorSettings, kl_divergence
from vcl_radial.nn.weights import PosteriorBlock, inverse_softplus
from vcl_radial.strategies import Scores
from vcl_radial.strategies.coreset_vcl import CoresetVCL
from vcl_radial.strategies.gvcl import GVCL, stretch, stretched_kl
from vcl_radial.strategies.ml_init_vcl import MLInitVCL
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.vcl import VCL


def make(method, network, stream, **settings):
    settings = {
        "optimizer": lambda model: Adam(model.parameters(), lr=1e-3, fused=True),
        "train_mb_size": 32,
        "eval_mb_size": 500,
        "train_epochs": 1,
        "eval_samples": 5,
        "evaluator": EvaluationPlugin(Scores()),
        "tensor_stream": stream,
        **settings,
    }
    return method(model=network, **settings)


def train(strategy, experiences):
    for number, experience in enumerate(experiences):
        torch.manual_seed(number)
        strategy.train(experience, eval_streams=[])


def weights(strategy):
    return torch.cat([p.detach().flatten() for p in strategy.model.parameters()])


def predictions(strategy, experiences):
    (scores,) = (p for p in strategy.evaluator.metrics if isinstance(p, Scores))
    found = []
    for experience in experiences:
        strategy.eval([experience])
        found.append(scores.predictions)
    return torch.cat(found)


def nll(strategy, experience):
    (scores,) = (p for p in strategy.evaluator.metrics if isinstance(p, Scores))
    strategy.eval([experience])
    return scores.values["nll"]


METHODS = [
    (GVCL, {"strength": 5.0, "penalty_weight": 0.2}),
    (CoresetVCL, {"coreset_size": 10, "coreset_epochs": 3}),
    (CoresetVCL, {"coreset_size": 10, "selection": "k-centre", "coreset_epochs": 3}),
    (MLInitVCL, {"ml_epochs": 2}),
    (MLInitVCL, {"ml_epochs": 2, "every_task": True}),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_a_state_dict_brings_the_strategy_back(method, options, scenario, make_network, tmp_path):
    multi_head, stream, benchmark = scenario
    tasks = list(benchmark.train_stream)
    first = make(method, make_network("gaussian", multi_head), stream, **options)
    train(first, tasks[:2])
    torch.save(first.state_dict(), tmp_path / "state")
    second = make(method, make_network("gaussian", multi_head), stream, **options)
    second.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    before = predictions(first, benchmark.test_stream[:2])
    assert torch.equal(before, predictions(second, benchmark.test_stream[:2]))
    for each in (first, second):
        train(each, tasks[2:3])
    assert torch.equal(weights(first), weights(second))
    after = [predictions(each, benchmark.test_stream[:3]) for each in (first, second)]
    assert torch.equal(*after)
    assert not torch.equal(after[0][: len(before)], before)


# GVCL


class PlainVCL(VCL):
    """VCL that takes the gradient by autograd, as GVCL does."""

    def penalty(self):
        return kl_divergence(self.network, self.tasks)


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_gvcl_at_one_and_one_is_vcl(family, make_network, multi_head_stream, multi_head_benchmark):
    tasks = list(multi_head_benchmark.train_stream)[:2]
    gvcl, vcl = (
        make(method, make_network(family), multi_head_stream) for method in (GVCL, PlainVCL)
    )
    for each in (gvcl, vcl):
        train(each, tasks)
    assert torch.equal(weights(gvcl), weights(vcl))


def gaussian_block(mean, scale, prior_mean, prior_scale, carried=True):
    block = PosteriorBlock(mean[None].double(), PosteriorSettings("gaussian"))
    block.double()
    with torch.no_grad():
        rho = [inverse_softplus(float(s)) for s in scale]
        block.rho.copy_(torch.tensor([rho], dtype=torch.float64))
        block.prior_mean.copy_(prior_mean)
        block.prior_scale.copy_(prior_scale)
    block.carried = carried
    return block


def regression_tasks():
    """Tasks y = X w + N(0, 1) with orthogonal columns in X, so that mean field is exact."""
    torch.manual_seed(0)
    tasks = []
    for _ in range(3):
        X = torch.linalg.qr(torch.randn(20, 4, dtype=torch.float64))[0] * torch.tensor([3, 1, 5, 2])
        y = X @ torch.tensor([1.0, -1, 0.5, 2]).double() + torch.randn(20, dtype=torch.float64)
        tasks.append((X, y))
    return tasks


def expected_nll(block, X, y):
    """E_q of the summed squared error over 2, in closed form: the noise of y has variance 1."""
    q = block.posterior
    errors = (y - q.mean @ X.T).square().sum() + (q.scale.square() @ X.square().T).sum()
    return errors / 2


@pytest.mark.parametrize(("beta", "strength"), [(1.0, 1.0), (0.2, 1.0), (0.5, 7.0), (2.0, 0.5)])
def test_linear_regression_has_the_posterior_that_the_equations_say(beta, strength):
    """Its precision is curvature / beta more than the last, and its mean solves the tempered
    normal equations; there, autograd finds the objective stationary."""
    s0 = torch.tensor(1.5).double()
    mean, precision = torch.zeros(4).double(), s0.square().reciprocal().expand(4)
    for task, (X, y) in enumerate(regression_tasks()):
        h = X.square().sum(0)
        pull = strength * (precision - s0**-2) + s0**-2
        new_mean = (X.T @ y / beta + pull * mean) / (h / beta + pull)
        new_precision = precision + h / beta
        block = gaussian_block(
            new_mean, new_precision**-0.5, mean, precision**-0.5, carried=task > 0
        )
        objective = expected_nll(block, X, y) + beta * stretched_kl(
            block, stretch(block, s0, strength)
        )
        gradients = torch.autograd.grad(objective, [block.mean, block.rho])
        torch.testing.assert_close(gradients[0], torch.zeros_like(block.mean), atol=1e-9, rtol=0)
        torch.testing.assert_close(gradients[1], torch.zeros_like(block.rho), atol=1e-9, rtol=0)
        mean, precision = new_mean, new_precision
    if strength == 1:
        # And the sequence ends where all data together end, tempered alike.
        X, y = (torch.cat(parts) for parts in zip(*regression_tasks(), strict=True))
        h = X.square().sum(0)
        torch.testing.assert_close(precision, h / beta + s0**-2)
        torch.testing.assert_close(mean, X.T @ y / beta / precision)


@pytest.mark.parametrize("strength", [0.0, 1.0, 30.0])
def test_as_beta_vanishes_the_pull_on_the_means_is_that_of_online_ewc(strength):
    s0 = torch.tensor(1.0).double()
    tasks = [X.square().sum(0) for X, _ in regression_tasks()]
    anchor, moved = torch.randn(4).double(), torch.randn(4).double()
    beta = 1e-8
    precision = sum(tasks) / beta + s0**-2
    block = gaussian_block(moved, precision**-0.5, anchor, precision**-0.5)
    kl = beta * stretched_kl(block, stretch(block, s0, strength))
    (found,) = torch.autograd.grad(kl, [block.mean])
    ewc = strength * sum(tasks) * (moved - anchor)
    torch.testing.assert_close(found[0], ewc, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_lambda_asks_nothing_more_of_the_scales(family, make_network):
    network = make_network(family, initial_noise=0.05)
    block = next(m for m in network.modules() if isinstance(m, PosteriorBlock))
    block.consolidate()
    with torch.no_grad():
        block.rho.add_(0.1 * torch.randn_like(block.rho))
    first = torch.tensor(1.0)
    plain = torch.autograd.grad(block.kl(), block.rho)[0]
    for strength in (0.1, 10.0):
        # With the mean at the prior's, there is nothing to stretch.
        kl = stretched_kl(block, stretch(block, first, strength))
        torch.testing.assert_close(kl, block.kl())
        torch.testing.assert_close(torch.autograd.grad(kl, block.rho)[0], plain)


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_what_has_not_learnt_is_not_stretched(family, make_network):
    block = next(m for m in make_network(family).modules() if isinstance(m, PosteriorBlock))
    first = block.prior_scale[0, 0].clone()
    assert torch.equal(stretch(block, first, 50.0), torch.ones_like(block.mean))
    unit = block.family.scale_for_weight_noise(1.0, block.mean.shape[-1])
    block.consolidate()
    block.prior_scale.fill_(first * unit)  # noise as wide as at first
    torch.testing.assert_close(stretch(block, first, 50.0), torch.ones_like(block.mean))
    block.prior_scale.fill_(first * unit * 3)  # and wider
    torch.testing.assert_close(stretch(block, first, 50.0), torch.ones_like(block.mean))
    block.prior_scale.fill_(first * unit * 1e-4)
    torch.testing.assert_close(stretch(block, first, 50.0), torch.full_like(block.mean, 50**0.5))


def test_a_larger_lambda_holds_the_means_tighter(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)[:2]
    distances = []
    for strength in (0.0, 1.0, 100.0):
        network = make_network("gaussian", initial_noise=0.05)
        gvcl = make(GVCL, network, multi_head_stream, strength=strength, train_epochs=3)
        train(gvcl, tasks[:1])
        before = network.body[0].weights.mean()[0].detach().clone()
        train(gvcl, tasks[1:])
        distances.append((network.body[0].weights.mean()[0] - before).norm().item())
    assert distances[0] > 1.2 * distances[1]
    assert distances[1] > 1.2 * distances[2]


def test_a_negative_lambda_is_refused(make_network, multi_head_stream):
    with pytest.raises(UserError, match=r"strength = -1 must be at least 0"):
        make(GVCL, make_network(), multi_head_stream, strength=-1)


# coresets


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
            vcl.coreset = ()  # and now the carried posterior predicts
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
        forgotten.append(nll(vcl, single_head_benchmark.test_stream[0]))
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
        vcl.coreset_epochs, vcl.penalty_weight, vcl._prediction = 30, weight, None
        moved = predictions(vcl, multi_head_benchmark.test_stream[:1]) - carried
        predicted.append(moved.abs().mean().item())
    assert predicted[0] > 1.5 * predicted[1] > 0
    assert predicted[2] < 0.05 * predicted[0]


def test_predicting_in_the_middle_of_a_task_does_not_change_training(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)[:2]
    ends = []
    for eval_every in (-1, 1):
        vcl = make(
            CoresetVCL,
            make_network("gaussian"),
            multi_head_stream,
            coreset_epochs=2,
            train_epochs=3,
            eval_every=eval_every,
        )
        for experience in tasks:
            torch.manual_seed(1)
            vcl.train(experience, eval_streams=[multi_head_benchmark.test_stream[:2]])
        ends.append(weights(vcl))
    assert torch.equal(*ends)


def blocks(model):
    return [module for module in model.modules() if isinstance(module, PosteriorBlock)]


def test_a_prediction_in_the_middle_of_a_task_is_fine_tuned_too(
    make_network, multi_head_stream, multi_head_benchmark
):
    """The copy is trained by its own means while the model is in the middle of a step."""
    distances = []

    class Witness(SupervisedPlugin):
        def after_training_epoch(self, strategy, **kwargs):
            tuned = strategy._fine_tuned()
            pairs = zip(tuned.parameters(), strategy.model.parameters(), strict=True)
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


def test_a_stock_optimiser_fine_tunes_too(make_network, multi_head_stream, multi_head_benchmark):
    network = make_network("gaussian", initial_noise=0.05)
    vcl = make(
        CoresetVCL,
        network,
        multi_head_stream,
        optimizer=Adam(network.parameters(), lr=1e-3),
        coreset_epochs=30,
    )
    train(vcl, list(multi_head_benchmark.train_stream)[:1])
    tuned = predictions(vcl, multi_head_benchmark.test_stream[:1])
    vcl.coreset = ()
    carried = predictions(vcl, multi_head_benchmark.test_stream[:1])
    assert not torch.allclose(tuned, carried, atol=0.01)


def test_a_coreset_as_large_as_a_task_is_refused(
    make_network, multi_head_stream, multi_head_benchmark
):
    vcl = make(CoresetVCL, make_network(), multi_head_stream, coreset_size=5000)
    with pytest.raises(UserError, match=r"coreset_size = 5000 must be at least 1 and leave"):
        train(vcl, list(multi_head_benchmark.train_stream)[:1])


# maximum-likelihood initialisation


def means(network):
    return {
        name: tensor
        for name, tensor in network.state_dict().items()
        if name.endswith((".mean", "weight", "bias"))
    }


def test_the_start_is_where_point_estimates_end(
    make_network, multi_head_stream, multi_head_benchmark
):
    """Batches of the whole task leave no randomness but the noise that there is not."""
    first = multi_head_benchmark.train_stream[0]
    settings = {"optimizer": lambda model: SGD(model.parameters(), lr=0.05), "train_mb_size": 1000}
    bayesian, point = make_network("gaussian"), make_network(None)
    start = copy.deepcopy(bayesian)
    start.head.adapt([0])
    vcl = make(MLInitVCL, bayesian, multi_head_stream, ml_epochs=30, train_epochs=0, **settings)
    naive = make(Naive, point, multi_head_stream, train_epochs=30, **settings)
    for each in (vcl, naive):
        each.train(first, eval_streams=[])
    for layer, point_layer in [
        (bayesian.body[0], point.body[0]),
        (bayesian.head.head(0), point.head.head(0)),
    ]:
        weight, bias = layer.weights.mean()
        torch.testing.assert_close(weight, point_layer.weight, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(bias, point_layer.bias, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(bayesian.body[0].weights.mean()[0], start.body[0].weights.mean()[0])


@pytest.mark.parametrize(("every_task", "starts"), [(False, [True, False]), (True, [True, True])])
def test_scales_and_priors_wait_for_the_variational_training(
    every_task, starts, make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network("gaussian", initial_noise=0.02)
    vcl = make(
        MLInitVCL,
        network,
        multi_head_stream,
        ml_epochs=3,
        train_epochs=0,
        every_task=every_task,
        penalty_weight=0.7,
    )
    for experience, start in zip(multi_head_benchmark.train_stream, starts, strict=False):
        network.head.adapt(experience.task_labels)
        before = copy.deepcopy(network.state_dict())
        vcl.consolidate = lambda experience: None
        vcl.train(experience, eval_streams=[])
        after = network.state_dict()
        moved = {name for name in before if _differ(before[name], after[name])}
        head = f"head.heads.{experience.task_labels[0]}."
        expected = {n for n in before if n.endswith(".mean") and n.startswith(("body", head))}
        assert moved == (expected if start else set())
        assert vcl.penalty_weight == 0.7


def _differ(a, b):
    return not torch.equal(a, b) if isinstance(a, torch.Tensor) else a != b


def test_a_start_at_the_likelihood_fits_sooner(
    make_network, multi_head_stream, multi_head_benchmark
):
    found = []
    for ml_epochs in (0, 20):
        network = make_network("gaussian", initial_noise=0.1)
        vcl = make(MLInitVCL, network, multi_head_stream, ml_epochs=ml_epochs, train_epochs=3)
        train(vcl, list(multi_head_benchmark.train_stream)[:1])
        found.append(nll(vcl, multi_head_benchmark.test_stream[0]))
    assert found[1] < 0.7 * found[0]


# point-estimate heads


@pytest.mark.parametrize("multi_head", [True, False])
def test_point_heads_leave_the_body_bayesian(multi_head):
    torch.manual_seed(0)
    network = MLP(64, 2, hidden=(8,), multi_head=multi_head, posterior="radial", point_heads=True)
    head = network.head.head(0) if multi_head else network.head.output
    assert isinstance(head, PointLinear)
    body_kl = network.body[0].weights.kl()
    assert torch.equal(kl_divergence(network, [0]), body_kl)


def test_a_point_head_is_trained_with_its_task_only(
    make_network, multi_head_stream, multi_head_benchmark
):
    torch.manual_seed(0)
    network = MLP(64, 2, hidden=(32,), posterior="gaussian", point_heads=True)
    vcl = make(VCL, network, multi_head_stream)
    first, second = list(multi_head_benchmark.train_stream)[:2]
    network.head.adapt([0, 1])
    untrained = network.head.head(1).weight.clone()
    vcl.train(first, eval_streams=[])
    assert torch.equal(network.head.head(1).weight, untrained)
    trained = network.head.head(0).weight.clone()
    vcl.train(second, eval_streams=[])
    assert torch.equal(network.head.head(0).weight, trained)
    assert not torch.equal(network.head.head(1).weight, untrained)


def test_without_a_posterior_point_heads_change_nothing():
    networks = []
    for point_heads in (True, False):
        torch.manual_seed(0)
        networks.append(MLP(4, 2, hidden=(3,), posterior=None, point_heads=point_heads))
        networks[-1].head.adapt([0])
    first, second = (network.state_dict() for network in networks)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
