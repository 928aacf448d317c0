import pytest
import torch
from failing import refuses
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from vcl_radial.nn import MLP, GaussianNetwork
from vcl_radial.optimizers import decay_within, effective_sample_size
from vcl_radial.optimizers.vadam import Vadam
from vcl_radial.optimizers.vogn import VOGN, GradientSquares


@pytest.fixture
def network():
    torch.manual_seed(0)
    network = MLP(6, 3, hidden=(5, 4), posterior=None)
    network.head.adapt([0, 1])
    return network


def row_squares(network, x, y, task):
    """Mean of the squared gradients of single rows, by vmap."""

    def loss(weights, row, label, t):
        return cross_entropy(functional_call(network, weights, (row[None], t[None])), label[None])

    weights = {n: p.detach() for n, p in network.named_parameters()}
    total = {n: torch.zeros_like(p) for n, p in weights.items()}
    for t in task.unique():
        rows = task == t
        gradients = vmap(grad(lambda w, r, c, t=t: loss(w, r, c, t)), in_dims=(None, 0, 0))(
            weights, x[rows], y[rows]
        )
        total = {n: total[n] + gradients[n].square().sum(0) for n in total}
    return {n: s / len(y) for n, s in total.items()}


@pytest.mark.parametrize("tasks", [[0], [0, 1]])
@pytest.mark.parametrize("passes", [1, 3])
def test_squares_of_row_gradients_are_those_of_one_row_at_a_time(network, tasks, passes):
    x, y = torch.randn(12, 6), torch.randint(3, (12,))
    task = torch.tensor(tasks).repeat(12 // len(tasks))
    expected = row_squares(network, x, y, task)
    squares = GradientSquares(network)
    logits = torch.stack([network(x, task) for _ in range(passes)])
    cross_entropy(logits.flatten(0, 1), y.repeat(passes)).backward()
    found = squares.take()
    names = {p: n for n, p in network.named_parameters()}
    assert {names[p] for p in found} == {
        n for n in expected if not n.startswith("head") or int(n.split(".")[2]) in tasks
    }
    for parameter, square in found.items():
        torch.testing.assert_close(square, expected[names[parameter]])
    assert squares.take() == {}


def test_squares_are_those_at_the_drawn_weights_under_the_names_of_the_means(network):
    wrapped = GaussianNetwork(network, initial_noise=0.3)
    squares = GradientSquares(network)
    x, y, task = torch.randn(8, 6), torch.randint(3, (8,)), torch.zeros(8, dtype=torch.int64)
    torch.manual_seed(4)
    cross_entropy(wrapped(x, 0), y).backward()
    found = squares.take()
    torch.manual_seed(4)
    noise = {name: q.draw() for name, q in wrapped.posteriors([0]).items()}
    with torch.no_grad():
        for name, q in wrapped.posteriors([0]).items():
            q.mean += noise[name]
    expected = row_squares(network, x, y, task)
    for name, q in wrapped.posteriors([0]).items():
        torch.testing.assert_close(found[q.mean], expected[name])


def test_nothing_is_gathered_without_gradient_or_after_closing(network):
    squares = GradientSquares(network)
    with torch.no_grad():
        network(torch.randn(2, 6), 0)
    squares.close()
    network(torch.randn(2, 6), 0).sum().backward()
    assert squares.take() == {}


def test_layers_whose_row_gradients_are_not_known_are_named():
    with refuses("Conv2d"):
        GradientSquares(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2, 2)))


def scalar_problem(prior_mean=3.0, prior_precision=8.0, precision=40.0):
    """One weight at 1 with a Gaussian prior."""
    wrapped = GaussianNetwork(nn.Linear(1, 1, bias=False))
    (q,) = wrapped.posteriors([]).values()
    q.mean.data.fill_(1.0)
    q.prior_mean.fill_(prior_mean)
    q.prior_precision.fill_(prior_precision)
    q.precision.fill_(precision)
    return wrapped.network, q


def test_a_vogn_step_by_hand():
    layer, q = scalar_problem()
    vogn = VOGN([q], GradientSquares(layer), lr=0.1, ess=4, beta1=0.5, beta2=0.75, damping=2.0)
    # loss 1/2 mean (w x)^2: row gradients 1 and 9, their mean 5 and mean square 41.
    (layer(torch.tensor([[1.0], [3.0]])).square().mean() / 2).backward()
    vogn.step()
    delta = 8 / 4
    curvature = 0.75 * (40 - 8) / 4 + 0.25 * 41
    gradient = 5 + delta * (1 - 3)
    assert q.mean.item() == pytest.approx(1 - 0.1 * gradient / (curvature + delta + 2))
    assert q.precision.item() == pytest.approx(4 * (curvature + delta))


def test_a_vadam_step_by_hand():
    layer, q = scalar_problem()
    vadam = Vadam([q], lr=0.1, ess=4, beta1=0.5, beta2=0.75)
    (layer(torch.tensor([[1.0], [3.0]])).square().mean() / 2).backward()
    vadam.step()
    delta = 8 / 4
    curvature = 0.75 * (40 - 8) / 4 + 0.25 * 5**2
    gradient = 5 + delta * (1 - 3)
    assert q.mean.item() == pytest.approx(1 - 0.1 * gradient / (curvature**0.5 + delta))
    assert q.precision.item() == pytest.approx(4 * (curvature + delta))


@pytest.mark.parametrize("kind", ["vogn", "vadam"])
def test_three_steps_by_hand_with_momentum_corrected_for_its_start(kind):
    layer, q = scalar_problem()
    settings = {"lr": 0.1, "ess": 4, "beta1": 0.5, "beta2": 0.75}
    optimizer = (
        VOGN([q], GradientSquares(layer), **settings) if kind == "vogn" else Vadam([q], **settings)
    )
    delta, mean, momentum, curvature = 8 / 4, 1.0, 0.0, (40 - 8) / 4
    for step in range(1, 4):
        optimizer.zero_grad()
        (layer(torch.tensor([[1.0], [3.0]])).square().mean() / 2).backward()
        optimizer.step()
        # Row gradients are w and 9 w, their mean 5 w and mean square 41 w^2.
        momentum = 0.5 * momentum + 0.5 * (5 * mean + delta * (mean - 3))
        square = 41 * mean**2 if kind == "vogn" else (5 * mean) ** 2
        curvature = 0.75 * curvature + 0.25 * square
        metric = (curvature if kind == "vogn" else curvature**0.5) + delta
        mean -= 0.1 * momentum / (1 - 0.5**step) / metric
        assert q.mean.item() == pytest.approx(mean)
        assert q.precision.item() == pytest.approx(4 * (curvature + delta))


def test_with_batches_of_one_point_vadam_and_vogn_have_one_precision():
    layer, q = scalar_problem()
    other_layer, other = scalar_problem()
    vogn = VOGN([q], GradientSquares(layer), lr=1e-12, ess=4, beta2=0.9)
    vadam = Vadam([other], lr=1e-12, ess=4, beta2=0.9)
    for x in torch.randn(30):
        for optimizer, module in ((vogn, layer), (vadam, other_layer)):
            optimizer.zero_grad()
            (module(x.view(1, 1)) - 2).square().mean().backward()
            optimizer.step()
    assert q.precision.item() == pytest.approx(other.precision.item())


def test_a_parameter_without_gradient_stays_where_it_is(network):
    wrapped = GaussianNetwork(network, initial_noise=0.1)
    posteriors = wrapped.start([0, 1])
    for optimizer in (
        VOGN(posteriors, GradientSquares(network), lr=0.1, ess=10),
        Vadam(posteriors, lr=0.1, ess=10),
    ):
        before = [(q.mean.detach().clone(), q.precision.clone()) for q in posteriors]
        optimizer.zero_grad()
        cross_entropy(wrapped(torch.randn(4, 6), 0), torch.tensor([0, 1, 2, 0])).backward()
        optimizer.step()
        for name, q, (mean, precision) in zip(
            wrapped.posteriors([0, 1]), posteriors, before, strict=True
        ):
            moved = not name.startswith("head.heads.1")
            assert torch.equal(q.mean, mean) is not moved
            assert torch.equal(q.precision, precision) is not moved


def test_tempering_multiplies_the_data():
    assert effective_sample_size(100, 0.25) == 400
    with refuses("kl_weight"):
        effective_sample_size(100, 0.0)


def test_a_task_forgets_the_curvature_that_it_starts_with_however_short_it_is():
    for steps in (1, 18, 740):
        assert decay_within(steps) ** steps == pytest.approx(1e-4)
    assert decay_within(10**6) == 0.999
    assert 0 < decay_within(0) < 1  # of no step
