import pytest
import torch
from torch import nn
from torch.func import functional_call, hessian, jacrev

from vcl_radial.curvature import diagonal_fisher
from vcl_radial.curvature.gauss_newton import joint_weight, layers_in_full, linear_layers
from vcl_radial.curvature.kronecker import (
    KroneckerFactors,
    KroneckerQuadratic,
    kronecker_factors,
    kronecker_penalty,
    kronecker_sum,
)
from vcl_radial.nn import MLP
from vcl_radial.nn.vgg import VGG

pytestmark = pytest.mark.usefixtures("double_precision")


def points(n):
    return torch.randn(n, 3), torch.randint(3, (n,))


def make_network():
    mlp = MLP(3, 3, hidden=(4, 5), multi_head=False, posterior=None)
    for p in mlp.parameters():
        nn.init.normal_(p)
    return mlp


def layers_of(network):
    return linear_layers(network, dict(network.named_parameters()))


def by_columns(weights):
    return weights.mT.flatten(-2)


def dense(pairs):
    """The matrix over the weights of a layer, stacked by columns."""
    return sum(torch.kron(A, G) for A, G in pairs)


def gaussian_hessian_root(noise):
    """S of -log N(y; f, noise^2): unit columns over the noise."""

    def root(outputs, targets):
        return [unit.expand(outputs.shape) / noise for unit in torch.eye(outputs.shape[-1])]

    return root


def spd(size):
    root = torch.randn(size, size)
    return root @ root.t()


def test_the_block_of_a_layer_is_exact_for_one_point():
    network = make_network()
    x, y = points(1)
    parameters = dict(network.named_parameters())
    jacobians = jacrev(lambda p: functional_call(network, p, (x,))[0])(parameters)
    p = network(x)[0].softmax(-1).detach()
    middle = p.diag() - torch.outer(p, p)
    found = kronecker_factors(network, layers_of(network), [((x,), y)])
    assert set(found) == {"body.0", "body.1", "head.output"}
    for name, factors in found.items():
        parts = [jacobians[f"{name}.weight"], jacobians[f"{name}.bias"].unsqueeze(-1)]
        jacobian = by_columns(torch.cat(parts, dim=-1))
        torch.testing.assert_close(dense([factors]), jacobian.t() @ middle @ jacobian)


@pytest.mark.parametrize(("n", "exact"), [(1, True), (20, False)])
def test_its_diagonal_is_the_exact_one_for_a_single_point_only(n, exact):
    network = make_network()
    x, y = points(n)
    diagonal = diagonal_fisher(network, dict(network.named_parameters()), [((x,), y)], "predictive")
    factors = kronecker_factors(network, layers_of(network), [((x,), y)])
    same = [
        torch.allclose(dense([pair]).diagonal(), by_columns(joint_weight(name, diagonal)))
        for name, pair in factors.items()
    ]
    assert same == [exact] * 3


def test_it_is_the_hessian_of_linear_regression():
    model, noise = nn.Linear(3, 2), 0.3
    x, y = torch.randn(20, 3), torch.randn(20, 2)

    def nll(weights):
        outputs = torch.cat([x, torch.ones(20, 1)], dim=1) @ weights.reshape(4, 2)
        return ((outputs - y) / noise).square().sum() / 2

    found = kronecker_factors(model, layers_of(model), [((x,), y)], gaussian_hessian_root(noise))
    joint = joint_weight("", dict(model.named_parameters())).detach()
    torch.testing.assert_close(dense([found[""]]), hessian(nll)(by_columns(joint)))


@pytest.mark.parametrize("size", [1, 4, 9])
def test_the_factors_do_not_depend_on_the_batches(size):
    network = make_network()
    x, y = points(9)
    whole = kronecker_factors(network, layers_of(network), [((x,), y)])
    batches = [((a,), b) for a, b in zip(x.split(size), y.split(size), strict=True)]
    cut = kronecker_factors(network, layers_of(network), batches)
    for name, factors in whole.items():
        torch.testing.assert_close(cut[name], factors)


def test_each_layer_counts_the_points_that_run_through_it():
    """The body's A is a mean over all points, a head's over those of its own task."""
    network = MLP(3, 3, hidden=(4,), multi_head=True, posterior=None)
    network.head.adapt([0, 1])
    x, y = points(9)
    parts = {0: slice(0, 6), 1: slice(6, 9)}
    data = [((x[rows], task), y[rows]) for task, rows in parts.items()]
    found = kronecker_factors(network, layers_of(network), data)
    inputs = torch.cat([x, torch.ones(9, 1)], dim=1)
    torch.testing.assert_close(found["body.0"].inputs, inputs.t() @ inputs / 9)
    features = torch.cat([network.body[0](x).relu().detach(), torch.ones(9, 1)], dim=1)
    for task, rows in parts.items():
        of_task = features[rows]
        expected = of_task.t() @ of_task / len(of_task)
        torch.testing.assert_close(found[f"head.heads.{task}"].inputs, expected)


def test_a_place_of_a_convolution_counts_as_a_point():
    """Where no gradient depends on the weights, as in a sum over places."""

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 2, 1)

        def forward(self, x):
            return self.layer(x).sum((2, 3))

    network, linear = Sum(), nn.Linear(3, 2)
    x, root = torch.randn(4, 3, 2, 5), gaussian_hessian_root(0.3)
    layers = layers_in_full(network, dict(network.named_parameters()))
    (of_places,) = kronecker_factors(network, layers, [((x,), torch.zeros(4))], root).values()
    rows = x.movedim(1, -1).reshape(-1, 3)
    points = [((rows,), torch.zeros(len(rows)))]
    (of_points,) = kronecker_factors(linear, layers_of(linear), points, root).values()
    for place, point in zip(of_places, of_points, strict=True):
        torch.testing.assert_close(place, point)


def test_a_kernel_that_sees_the_whole_image_is_a_linear_layer():
    convolution, linear = nn.Conv2d(2, 4, (3, 5)), nn.Linear(30, 4)
    with torch.no_grad():
        linear.weight.copy_(joint_weight("", {"weight": convolution.weight}))
        linear.bias.copy_(convolution.bias)
    x, y = torch.randn(7, 2, 3, 5), torch.randint(4, (7,))
    pairs, penalties = [], []
    for layer, images in ((convolution, x), (linear, x.flatten(1))):
        network = nn.Sequential(layer, nn.Flatten())
        layers = layers_in_full(network, dict(network.named_parameters()))
        pairs.append(kronecker_factors(network, layers, [((images,), y)]))
        past = KroneckerQuadratic()
        weights = dict(network.named_parameters())
        past.carry({n: 2 * w for n, w in weights.items()}, dict.fromkeys(weights, torch.zeros(())))
        past.add_factors(pairs[-1])
        penalties.append(past.penalty(weights))
    for one, other in zip(*(found["0"] for found in pairs), strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(*penalties)
    assert penalties[0] > 0


def test_curvature_of_a_network_in_bfloat16_is_near_that_in_float32():
    x, y = torch.randn(8, 3, 16, 16, dtype=torch.float32), torch.arange(8) % 2
    torch.set_default_dtype(torch.float32)
    found = []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        network = VGG(4, posterior=None, precision=precision)
        weights, data = dict(network.named_parameters()), [((x,), y)]
        diagonal = diagonal_fisher(network, weights, data, "predictive")
        factors = kronecker_factors(network, layers_in_full(network, weights), data)
        dense_traces = [A.trace() * G.trace() for A, G in factors.values()]
        found.append(torch.stack([*(d.sum() for d in diagonal.values()), *dense_traces]))
    assert found[1].dtype == torch.float32
    torch.testing.assert_close(*found, rtol=0.1, atol=1e-4)


@pytest.mark.parametrize("count", [1, 3])
def test_the_penalty_and_its_gradient_are_those_of_the_dense_matrix(count):
    pairs = [KroneckerFactors(spd(4), spd(3)) for _ in range(count)]
    weights = torch.randn(3, 4, requires_grad=True)
    v = by_columns(weights.detach())
    torch.testing.assert_close(kronecker_penalty(weights, pairs), v @ dense(pairs) @ v / 2)
    for value in (True, False):
        (gradient,) = torch.autograd.grad(3 * kronecker_penalty(weights, pairs, value), weights)
        torch.testing.assert_close(by_columns(gradient), 3 * dense(pairs) @ v)
    assert kronecker_penalty(weights, pairs, value=False) == 0


def test_the_memory_is_the_dense_quadratic_of_prior_and_summands():
    """For one layer with a bias and one without; a weight that is not asked for has no part."""
    sizes = {"a": (3, 4), "b": (2, 3)}
    centre = {
        "a.weight": torch.randn(3, 3),
        "a.bias": torch.randn(3),
        "b.weight": torch.randn(2, 3),
    }
    precision = {name: torch.rand_like(c) for name, c in centre.items()}
    pairs = {n: [KroneckerFactors(spd(i), spd(o)) for _ in range(2)] for n, (o, i) in sizes.items()}
    past = KroneckerQuadratic()
    past.replace(centre, precision)
    for summand in range(2):
        past.add_factors({name: of_layer[summand] for name, of_layer in pairs.items()})
    weights = {name: torch.randn_like(c) for name, c in centre.items()}
    moved = {name: w - centre[name] for name, w in weights.items()}
    terms = {}
    for name in sizes:
        v = by_columns(joint_weight(name, moved))
        P = by_columns(joint_weight(name, precision)).diag() + dense(pairs[name])
        terms[name] = v @ P @ v / 2
    torch.testing.assert_close(past.penalty(weights), terms["a"] + terms["b"])
    torch.testing.assert_close(past.penalty({"b.weight": weights["b.weight"]}), terms["b"])
    again = KroneckerQuadratic()
    again.load_state_dict(past.state_dict())
    assert torch.equal(again.penalty(weights), past.penalty(weights))


def partial_traces(matrix, inputs, gradients):
    """What is left of a matrix over both sides where one of them is summed out."""
    sides = matrix.reshape(inputs, gradients, inputs, gradients)
    return torch.einsum("aibi->ab", sides), torch.einsum("aiaj->ij", sides)


def log(matrix):
    values, vectors = torch.linalg.eigh(matrix)
    return vectors @ values.log().diag() @ vectors.t()


def three():
    return [KroneckerFactors(spd(4) * scale, spd(3)) for scale in (1.0, 0.1, 5.0)]


def test_one_product_for_a_sum_has_its_partial_traces_and_is_symmetric_and_positive():
    one = kronecker_sum(three_ := three())
    for expected, trace in zip(
        partial_traces(dense(three_), 4, 3), partial_traces(dense([one]), 4, 3), strict=True
    ):
        torch.testing.assert_close(trace, expected)
    for side in one:
        assert torch.equal(side, side.t())
        assert torch.linalg.eigvalsh(side).min() > 0


def test_one_product_for_a_sum_has_the_error_that_is_stated():
    one = kronecker_sum(summands := three())
    mean = KroneckerFactors(*(side / side.trace() for side in one))
    error = sum(
        A.trace()
        * G.trace()
        * torch.kron(A / A.trace() - mean.inputs, G / G.trace() - mean.gradients)
        for A, G in summands
    )
    torch.testing.assert_close(dense(summands) - dense([one]), error)
    assert error.norm() > 0.05 * dense(summands).norm()


def test_no_product_near_it_is_nearer_to_the_sum():
    """In von Neumann's divergence, but for what the sum alone decides."""
    one = kronecker_sum(summands := three())
    H = dense(summands)

    def divergence(pair):
        product = dense([pair])
        return product.trace() - (H * log(product)).sum()

    least = divergence(one)
    for _ in range(20):
        moves = [1e-2 * spd(size) for size in (4, 3)]
        for sign in (1, -1):
            moved = [side + sign * move for side, move in zip(one, moves, strict=True)]
            assert divergence(KroneckerFactors(*moved)) > least


@pytest.mark.parametrize("side", ["inputs", "gradients"])
def test_one_product_is_the_sum_where_one_side_differs_in_scale_only(side):
    same = spd(4) if side == "inputs" else spd(3)
    pairs = [
        pair._replace(**{side: same * c}) for pair, c in zip(three(), (1, 3, 0.2), strict=True)
    ]
    torch.testing.assert_close(dense([kronecker_sum(pairs)]), dense(pairs))


def test_one_product_is_the_same_in_any_order_and_one_after_another():
    first, second, third = summands = three()
    expected = dense([kronecker_sum(summands)])
    for pairs in (
        [third, first, second],
        [kronecker_sum([first, second]), third],
        [first._replace(inputs=first.inputs * 7, gradients=first.gradients / 7), second, third],
        [*summands, KroneckerFactors(spd(4), torch.zeros(3, 3))],
    ):
        torch.testing.assert_close(dense([kronecker_sum(pairs)]), expected)


def test_without_any_curvature_the_sum_is_0():
    flat = KroneckerFactors(spd(4), torch.zeros(3, 3))
    assert torch.equal(dense([kronecker_sum([flat, flat])]), torch.zeros(12, 12))


def test_a_summed_memory_is_exact_for_one_task_and_no_larger_for_many():
    centre = {"a.weight": torch.zeros(3, 4)}
    pasts = [KroneckerQuadratic(summed=summed) for summed in (False, True)]
    weights, penalties, sizes = {"a.weight": torch.randn(3, 4)}, [], []
    for summand in three():
        for past in pasts:
            past.replace(centre, {"a.weight": torch.ones(3, 4)})
            past.add_factors({"a": summand})
        penalties.append([past.penalty(weights) for past in pasts])
        sizes.append([len(past.factors["a"]) for past in pasts])
    assert torch.equal(*penalties[0])
    assert not torch.allclose(*penalties[2])
    assert sizes == [[1, 1], [2, 1], [3, 1]]


@pytest.mark.parametrize("summed", [False, True])
def test_sequential_bayesian_linear_regression_ends_at_the_batch_posterior(summed):
    """There every Hessian is one Kronecker product and the Laplace approximation is the posterior:
    after three tasks mode and precision are those of all data at once. The gradients of all tasks
    are alike, so that one product is their sum."""
    prior, noise = 0.5, 0.4
    xs, ys = torch.randn(3, 10, 3), torch.randn(3, 10, 2)
    model, past = nn.Linear(3, 2), KroneckerQuadratic(summed=summed)
    weights = dict(model.named_parameters())
    priors = {name: torch.full_like(w, prior) for name, w in weights.items()}
    past.replace({name: torch.zeros_like(w) for name, w in weights.items()}, priors)
    for x, y in zip(xs, ys, strict=True):
        optimiser = torch.optim.LBFGS(
            model.parameters(), max_iter=500, tolerance_grad=1e-12, tolerance_change=0,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def loss(x=x, y=y, optimiser=optimiser):
            optimiser.zero_grad()
            total = ((model(x) - y) / noise).square().sum() / 2 + past.penalty(weights)
            total.backward()
            return total

        optimiser.step(loss)
        data, root = [((x,), y)], gaussian_hessian_root(noise)
        past.replace(weights, priors)
        past.add_factors(kronecker_factors(model, layers_of(model), data, root))
    inputs = torch.cat([xs.flatten(0, 1), torch.ones(30, 1)], dim=1)
    precision = inputs.t() @ inputs / noise**2 + prior * torch.eye(4)
    batch_mode = torch.linalg.solve(precision, inputs.t() @ ys.flatten(0, 1) / noise**2).t()
    torch.testing.assert_close(joint_weight("", past.centre), batch_mode, rtol=1e-7, atol=1e-9)
    found = dense(past.factors[""]) + by_columns(joint_weight("", past.precision)).diag()
    torch.testing.assert_close(found, torch.kron(precision, torch.eye(2)))


def test_inputs_of_0_add_nothing_to_a_sum():
    nothing = KroneckerFactors(torch.zeros(3, 3), spd(2))
    total = kronecker_sum([nothing, nothing])
    assert not dense([total]).any()
    some = KroneckerFactors(spd(3), spd(2))
    torch.testing.assert_close(dense([kronecker_sum([nothing, some])]), dense([some]))
