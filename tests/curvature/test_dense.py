"""The quadratic memory with a whole matrix, and the Gauss-Newton matrix of a network."""

import pytest
import torch
from torch.func import hessian
from torch.nn.functional import cross_entropy

from vcl_radial.curvature import DenseQuadratic, diagonal_fisher, gauss_newton_matrix
from vcl_radial.curvature.dense import flat
from vcl_radial.likelihoods import Categorical
from vcl_radial.nn import MLP

ROOT = Categorical().hessian_root


def tensors(seed=0):
    torch.manual_seed(seed)
    return {"a": torch.randn(2, 3), "b": torch.randn(4), "c": torch.randn(2)}


def positive(size, seed=0):
    torch.manual_seed(seed)
    columns = torch.randn(size, size + 2, dtype=torch.float64)
    return columns @ columns.T


def memory():
    """Precisions and centres of a, b and c; a and b curve together, and c and a."""
    past, centres = DenseQuadratic(), tensors(1)
    past.replace(centres, {name: torch.rand_like(c) + 1 for name, c in centres.items()})
    past.add_matrix(["a", "b"], positive(10))
    past.add_matrix(["c", "a"], positive(8, seed=3))
    whole = torch.zeros(12, 12, dtype=torch.float64)
    whole[:10, :10] = positive(10)
    at = torch.tensor([10, 11, *range(6)])
    whole[at[:, None], at] += positive(8, seed=3)
    return past, centres, whole + flat(past.precision.values()).diag()


@pytest.mark.parametrize("names", ["abc", "a", "bc"])
def test_it_is_the_form_of_the_whole_matrix_with_what_is_left_out_at_its_centre(names):
    past, centres, whole = memory()
    weights = {name: w.requires_grad_() for name, w in tensors(2).items() if name in names}
    v = flat(weights[name] - c if name in names else 0 * c for name, c in centres.items())
    expected = (v @ whole @ v / 2).float()
    penalty = past.penalty(weights)
    torch.testing.assert_close(penalty, expected)
    slopes = torch.autograd.grad(expected, list(weights.values()), retain_graph=True)
    without = past.penalty(weights, value=False)
    assert without.item() == 0
    for form in (penalty, without):
        ours = torch.autograd.grad(form, list(weights.values()))
        for one, other in zip(ours, slopes, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_draws_have_the_inverse_of_the_whole_matrix_as_their_covariance():
    past, _, whole = memory()
    draws = torch.stack([flat(past.draw("abc").values()) for _ in range(10_000)])
    torch.testing.assert_close(torch.cov(draws.T), torch.linalg.inv(whole), rtol=0.1, atol=0.01)
    assert past.draw("c").keys() == {"c"}


def test_the_precision_of_some_weights_is_their_block_and_of_new_ones_their_diagonal():
    past, _, whole = memory()
    precision = {"c": past.precision["c"], "new": torch.tensor([5.0]), "b": past.precision["b"]}
    at = torch.tensor([10, 11, 6, 7, 8, 9])
    expected = torch.zeros(7, 7, dtype=torch.float64)
    to = torch.tensor([0, 1, 3, 4, 5, 6])
    expected[to[:, None], to], expected[2, 2] = whole[at[:, None], at], 5.0
    torch.testing.assert_close(past.precision_of(precision), expected)


def test_its_state_is_all_of_it():
    past, _, _ = memory()
    again = DenseQuadratic()
    again.load_state_dict(past.state_dict())
    assert torch.equal(again.penalty(tensors(2)), past.penalty(tensors(2)))
    kept = past.state_dict()["matrix"]
    before = kept.clone()
    past.add_matrix(["b"], positive(4))
    assert torch.equal(kept, before)


@pytest.mark.parametrize("batch", [3, 20])
def test_the_gauss_newton_matrix_of_a_linear_model_is_its_hessian(batch):
    torch.manual_seed(0)
    network = MLP(4, 3, hidden=(), multi_head=False, posterior=None)
    x, y = torch.randn(20, 4), torch.arange(20) % 3
    weights = dict(network.named_parameters())
    points = [
        ((part,), labels) for part, labels in zip(x.split(batch), y.split(batch), strict=True)
    ]

    def nll(w):
        weight, bias = w[:12].view(3, 4), w[12:]
        return cross_entropy(x.double() @ weight.T + bias, y, reduction="sum")

    exact = hessian(nll)(flat(weights.values()).detach())
    torch.testing.assert_close(
        gauss_newton_matrix(network, weights, points, ROOT), exact, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("heads", [[0], [1, 2]])
def test_its_diagonal_is_the_predictive_fisher(heads):
    """Of several heads too, each of which sees its own points."""
    torch.manual_seed(0)
    network = MLP(4, 3, hidden=(5,), posterior=None)
    network.head.adapt(heads)
    weights = dict(network.named_parameters())
    points = [((torch.randn(9, 4), head), torch.arange(9) % 3) for head in heads]
    fisher = diagonal_fisher(network, weights, points, "predictive")
    matrix = gauss_newton_matrix(network, weights, points, ROOT)
    torch.testing.assert_close(matrix.diagonal(), flat(fisher.values()), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(matrix, matrix.T)
