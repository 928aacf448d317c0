"""What is true of every method that the registry finds, whatever its options, in plain PyTorch.

The checks of `vcl_radial.conformance` say more, of shipped recipes driven by Avalanche.
"""

import copy
import math
import re
from functools import cache
from itertools import pairwise

import pytest
import torch
from failing import fails, refuses
from scenarios import ALL, OF_CLASSES, QUADRATIC, Learner, digits, network, posterior_for
from torch.optim import SGD

from vcl_radial.errors import UserError
from vcl_radial.methods.quadratic import QuadraticMethod
from vcl_radial.methods.registry import built_in_class
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import PosteriorSettings, WithHeads
from vcl_radial.nn.convnet import ConvNet
from vcl_radial.nn.rdp import RDPSettings

QUICK = {
    "coreset_vcl": {"coreset_size": 10, "coreset_epochs": 3},
    "ml_init_vcl": {"ml_epochs": 2},
    "gvcl": {"strength": 5.0, "kl_weight": 0.2},
    "sfsvi": {"context_points": 20},
    "rdp_vcl": {"lr": 1e-2, "batch_size": ALL},
    "replay": {"buffer_size": 20},
    **{
        name: {"lr": 1e-2}
        for name in ("vadam", "laplace_diagonal", "laplace_kronecker", "laplace_low_rank")
    },
    "badam": {"lr": 1e-2, "prior_scale": 0.1},
    "laplace_linearised": {"lr": 1e-2, "evidence": False},
    "deep_ensemble": {"members": 2},
    "mesu": {"largest_move": 0.9},
    "learning_body": {"lr": 1e-2, "learner": "l2", "kl_weight": 100.0, "propagate": True},
    **{name: {"lr": 1e-2, "batch_size": 20} for name in ("swag", "sgld")},
    **{name: {"lr": 0.1} for name in ("vogn", "ivon")},  # in units of the curvature
    **{name: {"kl_weight": strength} for name, strength in QUADRATIC.items()},
}
VARIANTS = {
    "coreset_vcl k-centre": {"coreset_size": 10, "selection": "k-centre", "coreset_epochs": 3},
    "coreset_vcl after ml": {"coreset_size": 10, "coreset_epochs": 1, "ml_epochs": 2},
    "ml_init_vcl every task": {"ml_epochs": 2, "every_task": True},
    "rdp_vcl column": {
        "lr": 1e-2,
        "batch_size": ALL,
        "posterior": RDPSettings("column", 0.05),
    },
    "replay balanced": {"buffer_size": 60, "selection": "class-balanced"},
    "si by sgd": {"optimizer": SGD},
    "vcl low rank": {"posterior": PosteriorSettings("low-rank", rank=3)},
    "vcl radial low rank": {"posterior": PosteriorSettings("radial-low-rank", rank=3)},
    "ml_init_vcl low rank": {"ml_epochs": 2, "posterior": PosteriorSettings("low-rank", rank=3)},
    "gvcl gaussian": {"strength": 5.0, "posterior": "gaussian"},
    "badam linearised": {"lr": 1e-2, "prior_scale": 0.1, "linearised": True},
    "bayes_linear random": {"features": "random-relu", "units": 50, "evidence": True},
    "bayes_linear tangent": {"features": "tangent", "directions": 5, "evidence": True},
    "bayes_discriminant random": {"features": "random-relu", "units": 50},
    "ranpac random": {"features": "random-relu", "units": 50},
    "rwalk by sgd": {"optimizer": SGD},
    "slda random": {"features": "random-relu", "units": 50},
    "laplace_linearised diagonal": {"lr": 1e-2, "structure": "diagonal"},
    "laplace_linearised last-layer": {"lr": 1e-2, "structure": "last-layer"},
    "laplace_kronecker summed": {"lr": 1e-2, "factors": "summed"},
    "deep_ensemble radial": {"members": 2, "posterior": "radial"},
    "deep_ensemble rdp": {"members": 2, "posterior": RDPSettings("row", 0.05), "lr": 1e-2},
}
LINEAR_ONLY = {"sfsvi", "vogn", "laplace_linearised"}
"""Methods that know no convolution."""
CASES = {name: QUICK.get(name, {}) for name in OF_CLASSES} | VARIANTS
ONE_AFTER_ANOTHER = [
    case for case in CASES if not built_in_class(case.split()[0]).needs_whole_stream
]


def learner(case, multi_head=True, **settings):
    settings = {"batch_size": 100, **CASES[case], **settings}
    settings.pop("posterior", None)
    return Learner(case.split()[0], network(posterior_of(case), multi_head, (8,)), **settings)


def posterior_of(case):
    """The posterior of the network that a case trains."""
    return CASES[case].get("posterior", posterior_for(case.split()[0]))


@cache
def two_tasks(case, loss_value=True):
    """The weights before, between and after two tasks, and whether old heads are trained too."""
    trained = learner(case, loss_value=loss_value)
    trained.adapt(0, 1, 2)
    weights = [trained.parameters()]
    for task in (0, 1):
        weights.append(trained.train(task).parameters())
    return weights, trained.method.trains_old_heads


@pytest.mark.parametrize(
    ("case", "multi_head"),
    [*((case, True) for case in CASES), *((name, False) for name in OF_CLASSES)],
)
def test_its_state_is_all_of_it_and_predicting_is_free(case, multi_head, tmp_path):
    """Three ways through three tasks end alike: straight; with predictions; stopped after two."""
    straight, asked, stopped = (learner(case, multi_head, eval_samples=2) for _ in range(3))
    tasks = tests = range(3)
    straight.train(*tasks[:2])
    asked.predictions(*tests)
    asked.train(*tasks[:2], after_step=lambda: asked.predictions(0))
    torch.save(asked.method.state_dict(), tmp_path / "state")
    before = straight.predictions(*tests)
    stopped.method.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert torch.equal(stopped.predictions(*tests), before)
    straight.train(*tasks[2:])
    after, weights = straight.predictions(*tests), straight.weights()
    assert not torch.equal(after, before)
    for other in (asked, stopped):
        other.train(*tasks[2:])
        assert torch.equal(other.weights(), weights)
        assert torch.equal(other.predictions(*tests), after)
    x, method = straight.stream.inputs(0, "test"), straight.method
    method.network.eval()
    torch.testing.assert_close(
        method.predict(x[:7], 0, number=0), method.predict(x, 0, number=0)[:7]
    )


@pytest.mark.parametrize("case", CASES)
def test_it_learns_and_a_state_does_not_change_afterwards(case):
    settings = {"lr": 1e-2} | CASES[case] | {"epochs": 5, "batch_size": 32}
    learned = learner(case, **settings).train(0)
    assert learned.accuracy(0) > 80
    state = learned.method.state_dict()
    past = copy.deepcopy({key: part for key, part in state.items() if key != "network"})
    learned.epochs = 1
    learned.train(1)
    assert _same(past, {key: state[key] for key in past})


def _same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


@pytest.mark.parametrize("case", ONE_AFTER_ANOTHER)
def test_heads_of_other_tasks_rest(case):
    """And those to come, made early, are as they were made: nothing holds or moves them."""
    weights, trains_old_heads = two_tasks(case)
    for task, (before, after) in enumerate(pairwise(weights)):
        moved = {
            int(re.search(r"heads\.(\d+)", name)[1])
            for name, weight in after.items()
            if "head" in name and not torch.equal(weight, before[name])
        }
        assert moved == ({*range(task + 1)} if trains_old_heads else {task})


@pytest.mark.parametrize("case", ONE_AFTER_ANOTHER)
def test_where_a_task_ends_its_penalty_is_0_and_around_it_above(case, multi_head):
    made = learner(case, multi_head)
    method = made.method
    if method.memoryless or method.penalty_off_minimum or method.penalty_grows_with_points:
        pytest.skip("its class says that its penalty is another")
    made.train(0)
    penalty = method.penalty()
    assert float(torch.as_tensor(penalty).detach()) == pytest.approx(0, abs=1e-3)
    with torch.no_grad():
        for weight in method.parameters_in_use().values():
            weight.add_(0.1 * torch.randn_like(weight))
    assert method.penalty() > 0.01 or not isinstance(penalty, torch.Tensor)


@pytest.mark.parametrize(
    "case",
    [case for case in ONE_AFTER_ANOTHER if not case.startswith(("replay", "mc_dropout", "sfsvi"))],
)
def test_the_loss_is_a_mean_over_points_and_the_penalty_over_n(case):
    """Whatever the batches. Replay, dropout and SFSVI draw anew with every batch."""
    trained = learner(case, loss_value=True).train(0)
    method, losses = trained.method, {}
    method.gradients_are_read = True
    trained.begin(1)
    with torch.no_grad():
        for name, weight in method.parameters_in_use().items():
            if "rho" not in name:
                weight.add_(0.03 * torch.randn_like(weight))
    for size in (50, ALL):
        for method.kl_weight in (1.0, 3.0):
            losses[size, method.kl_weight] = trained.standing_loss(1, size, begin=False)
    for (_, weight), loss in losses.items():
        torch.testing.assert_close(loss, losses[ALL, weight], rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        expected = 2 * float(method.penalty()) / method.task.points
    assert (losses[50, 3.0] - losses[50, 1.0]).item() == pytest.approx(expected, rel=1e-2, abs=1e-4)


@pytest.mark.parametrize("case", ONE_AFTER_ANOTHER)
def test_training_is_the_same_with_the_penaltys_value_and_without(case):
    ends = [two_tasks(case, value)[0][-1] for value in (True, False)]
    assert all(torch.equal(weight, ends[1][name]) for name, weight in ends[0].items())


@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_posterior_that_it_does_not_serve_is_refused_with_what_it_serves(name):
    kind = built_in_class(name)
    for posterior in (
        None,
        "gaussian",
        "radial",
        "low-rank",
        "radial-low-rank",
        RDPSettings("row"),
    ):
        line = refusal(name, posterior)
        assert line is None or "posterior = '" in line or "network = 'mlp'" in line
        if issubclass(kind, VCL) and posterior is None:
            assert bool(line) is bool(kind.posteriors)
        if issubclass(kind, QuadraticMethod) or hasattr(kind, "decays"):
            assert bool(line) is (posterior is not None)


class FewImages:
    """The first images of each task of the digits."""

    def __init__(self):
        self.stream = digits(flatten=False)
        self.task_label = self.stream.task_label

    def inputs(self, number, part):
        return self.stream.inputs(number, part)[:40]

    def labels(self, number, part):
        return self.stream.labels(number, part)[:40]


@pytest.mark.parametrize("name", OF_CLASSES)
def test_it_trains_convolutions_or_says_before_training_that_it_cannot(name):
    shape, settings = (1, 8, 8), {"batch_size": ALL, **QUICK.get(name, {})}
    torch.manual_seed(0)
    net = WithHeads(ConvNet(shape), shape, 2, posterior=posterior_for(name))
    if name in LINEAR_ONLY:
        with refuses("linear"):
            Learner(name, net)
        return
    learner = Learner(name, net, FewImages(), **settings).train(0, 1)
    assert learner.predictions(0, 1).isfinite().all()


def refusal(name, posterior):
    """What a method says of a network that it does not take, if it does not."""
    try:
        built_in_class(name)(network(posterior))
    except UserError as error:
        return str(error)
    return None


LIMITS = [
    *((name, {"kl_weight": 0.0}, "naive", {}) for name in QUADRATIC),
    ("laplace_diagonal", {"kl_weight": 0.0}, "naive", {}),
    ("laplace_kronecker", {"kl_weight": 0.0}, "naive", {}),
    ("laplace_low_rank", {"kl_weight": 0.0}, "naive", {}),
    ("laplace_linearised", {"kl_weight": 0.0, "structure": "diagonal"}, "naive", {}),
    ("laplace_linearised", {"kl_weight": 0.0, "structure": "last-layer"}, "naive", {}),
    ("lwf", {"strength": 0.0}, "naive", {}),
    ("mc_dropout", {"rate": 0.0, "prior_scale": 1e6}, "naive", {}),
    ("deep_ensemble", {"members": 1}, "naive", {}),
    ("gvcl", {}, "vcl", {}),
    ("ml_init_vcl", {"ml_epochs": 0}, "vcl", {}),
    ("coreset_vcl", {"ml_epochs": 0}, "coreset_vcl", {}),
    ("coreset_vcl", {"coreset_epochs": 0}, "coreset_vcl", {"coreset_epochs": 3}),
]


@pytest.mark.parametrize(("one", "options", "other", "others"), LIMITS)
def test_at_the_end_of_its_range_it_is_another_method(one, options, other, others):
    net = posterior_for(one)
    ends = [
        Learner(name, network(net), batch_size=100, **settings).train(0, 1)
        for name, settings in ((one, options), (other, others))
    ]
    torch.testing.assert_close(ends[0].weights(), ends[1].weights(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", [*QUADRATIC, "lwf", "replay", "frozen_body", "single_task"])
def test_the_first_task_is_learnt_as_in_fine_tuning(name):
    ends = [Learner(kind, network(None)).train(0).weights() for kind in (name, "naive")]
    assert torch.equal(*ends)


IMPOSSIBLE = {
    "ewc": {"options.gamma": [1.5], "options.fisher": ["sampled"]},
    "ewc_separate": {"options.fisher": ["sampled"]},
    "ewc_dr": {"options.largest": [0.0]},
    "si": {"options.xi": [0.0]},
    "mesu": {"options.window": [0], "options.rate": [0.0], "options.largest_move": [1.0]},
    "rwalk": {"options.xi": [0.0], "options.alpha": [1.5], "options.interval": [0]},
    "slda": {"options.shrinkage": [-0.1, 1.5]},
    "gvcl": {"options.strength": [-1]},
    "lwf": {"options.temperature": [0]},
    "replay": {"options.buffer_size": [0], "options.selection": ["newest"]},
    "sfsvi": {"options.context_points": [0], "options.function_scale": [0.0]},
    "laplace_linearised": {"prior_scale": [0.0], "options.structure": ["low"]},
    "laplace_low_rank": {"options.rank": [0]},
    "laplace_diagonal": {
        "options.prior_precision": [-1.0, math.nan],
        "options.hessian_weight": [-1.0, math.nan],
    },
    "laplace_kronecker": {"options.factors": ["one"], "options.hessian_weight": [-1.0, math.nan]},
    "badam": {"options.beta2": [1.0]},
    "vadam": {"options.beta2": [1.0]},
    "vogn": {"options.beta2": [1.0]},
    "ivon": {"initial_noise": [math.inf], "options.beta2": [1.0]},
    "coreset_vcl": {"options.coreset_rate": [0.0, -1.0, math.inf, math.nan]},
    "mc_dropout": {"options.rate": [-0.1, 1.0, math.nan]},
    "swag": {"options.rank": [0], "options.collect_from": [1.0], "options.max_curvature": [0.0]},
    "sgld": {"prior_scale": [0.0], "options.kept": [0], "options.temperature": [-1.0]},
}
"""What an option cannot be, by the key that its error has."""


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_option_is_named(name):
    for key, values in IMPOSSIBLE[name].items():
        for value in values:
            with fails(key):
                Learner(name, **{key.removeprefix("options."): value})


def test_draws_at_the_means_cannot_be_linearised():
    with refuses("options.linearised", "options.predict_at_means"):
        Learner("badam", linearised=True, predict_at_means=True)
