"""The memory of the largest directions, against dense matrices."""

import pytest
import torch
from torch import nn

from vcl_radial.curvature import (
    LowRankQuadratic,
    diagonal_fisher,
    gauss_newton_matrix,
    gauss_newton_product,
    linear_layers,
)
from vcl_radial.curvature.low_rank import largest_directions
from vcl_radial.nn import MLP

SIZES = {"a": (2, 3), "b": (4,), "c": (2,)}


pytestmark = pytest.mark.usefixtures("double_precision")


def positive(size, rank):
    columns = torch.randn(size, rank)
    return columns @ columns.T


def dense(past, names=SIZES):
    """L over these weights in turn."""
    P = torch.cat([past.precision[name].flatten() for name in names])
    V = torch.cat([past.factor[name] for name in names], dim=1)
    return P.diag() + V.T @ V


def added(past, matrix, names):
    """A matrix over the weights of these names added to the memory."""
    shapes = {name: torch.Size(SIZES[name]) for name in names}
    parts = torch.split(matrix.diagonal(), [shape.numel() for shape in shapes.values()])

    def product(directions):
        rows = torch.cat([directions[name] for name in names], dim=1) @ matrix
        split = torch.split(rows, [shape.numel() for shape in shapes.values()], dim=1)
        return dict(zip(names, split, strict=True))

    past.add_curvature(product, {n: d.view(shapes[n]) for n, d in zip(names, parts, strict=True)})


def memory(rank):
    """Of unit precision around random centres."""
    past = LowRankQuadratic(rank)
    centres = {name: torch.randn(shape) for name, shape in SIZES.items()}
    past.replace(centres, {name: torch.ones(shape) for name, shape in SIZES.items()})
    return past


def test_the_penalty_and_its_gradient_are_those_of_the_dense_matrix():
    past = memory(3)
    added(past, positive(12, 5), "abc")
    moved = {name: torch.randn(SIZES[name]) for name in SIZES}
    weights = {name: (past.centre[name] + m).requires_grad_() for name, m in moved.items()}
    v = torch.cat([m.flatten() for m in moved.values()])
    torch.testing.assert_close(past.penalty(weights), v @ dense(past) @ v / 2)
    for value in (True, False):
        form = past.penalty(weights, value)
        gradient = torch.autograd.grad(form, [*weights.values()])
        torch.testing.assert_close(torch.cat([g.flatten() for g in gradient]), dense(past) @ v)
    assert past.penalty(weights, value=False) == 0
    part = {"b": weights["b"]}
    b = moved["b"]
    torch.testing.assert_close(past.penalty(part), b @ dense(past)[6:10, 6:10] @ b / 2)


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_the_diagonal_is_that_of_the_sum_whatever_the_rank(rank):
    """And nothing is taken from it: L is no more than the sum beside what is cut off."""
    past, total = memory(rank), torch.eye(12)
    for _ in range(3):
        matrix = positive(12, 6)
        added(past, matrix, "abc")
        total += matrix
        torch.testing.assert_close(dense(past).diagonal(), total.diagonal())
        assert all((P >= 1).all() for P in past.precision.values())
        assert len(past.factor["a"]) == rank


def test_of_a_rank_that_suffices_the_sum_is_exact():
    """Over weights that come and go too, as heads do."""
    past, total = memory(7), torch.eye(12)
    first, second = positive(10, 3), positive(8, 4)
    added(past, first, "ab")
    total[:10, :10] += first
    added(past, second, "ca")
    at = torch.tensor([10, 11, *range(6)])
    total[at[:, None], at] += second
    torch.testing.assert_close(dense(past), total)


def test_the_directions_are_the_largest_and_no_more_than_the_matrix():
    vectors = torch.linalg.qr(torch.randn(40, 40)).Q
    values = torch.cat([torch.tensor([100.0, 60.0, 30.0]), torch.rand(37)])
    matrix = vectors * values @ vectors.T
    V = largest_directions(lambda Q: Q @ matrix, 3, 40, matrix)
    best = vectors[:, :3] * values[:3] @ vectors[:, :3].T
    torch.testing.assert_close(V.T @ V, best, rtol=0, atol=1e-2)
    assert torch.linalg.eigvalsh(matrix - V.T @ V).min() > -1e-9


def test_a_matrix_of_zeros_has_no_directions():
    past = memory(2)
    added(past, torch.zeros(12, 12), "abc")
    torch.testing.assert_close(dense(past), torch.eye(12))


@pytest.mark.parametrize("bias", [True, False])
def test_products_with_the_gauss_newton_matrix_are_those_of_the_matrix_in_full(bias):
    network = (
        MLP(3, 3, hidden=(4, 5), multi_head=False, posterior=None)
        if bias
        else nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, 3, bias=False))
    )
    data = [((torch.randn(n, 3),), torch.randint(3, (n,))) for n in (5, 7)]
    weights = dict(network.named_parameters())
    matrix = gauss_newton_matrix(network, weights, data)
    torch.testing.assert_close(
        matrix.diagonal(),
        torch.cat(
            [F.flatten() for F in diagonal_fisher(network, weights, data, "predictive").values()]
        ),
    )
    sizes = [w.numel() for w in weights.values()]
    D = torch.randn(4, sum(sizes))
    directions = dict(zip(weights, torch.split(D, sizes, dim=1), strict=True))
    product = gauss_newton_product(network, linear_layers(network, weights), data, directions)
    torch.testing.assert_close(torch.cat([product[name] for name in weights], dim=1), D @ matrix)


def test_the_state_is_all_of_it():
    past, other = memory(3), LowRankQuadratic(3)
    added(past, positive(12, 5), "abc")
    other.load_state_dict(past.state_dict())
    assert torch.equal(dense(other), dense(past))
