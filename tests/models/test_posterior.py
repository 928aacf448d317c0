"""The posterior of a kept model by layer: scales and correlations are those of its draws."""

import pytest
import torch
from failing import refuses

import vcl_radial as vr
from vcl_radial.curvature import KroneckerFactors
from vcl_radial.models.posterior import LARGEST, Layer

METHODS = ("radial-vcl", "low-rank-vcl", "laplace-kronecker", "laplace-low-rank", "bayes-linear")


def correlation(draws):
    return torch.corrcoef(draws.double().T)


def test_a_low_rank_layer_has_the_correlations_of_its_draws():
    generator = torch.Generator().manual_seed(0)
    mean, scale = torch.randn(1, 4), torch.rand(1, 4) + 0.5
    factor = torch.randn(1, 2, 4, generator=generator)
    draws = vr.posteriors.LowRank(mean, scale, factor).sample(100_000, generator)[:, 0]
    layer = Layer(mean, scale, factor)
    assert torch.allclose(layer.correlations()[0], correlation(draws), atol=0.02)


def test_a_kronecker_layer_has_the_correlations_of_its_precision():
    # Without a diagonal part, the inverse of a product is the product of the inverses.
    A, G = (
        root @ root.T + torch.eye(n) for n, root in ((2, torch.randn(2, 2)), (3, torch.ones(3, 3)))
    )
    layer = Layer(
        torch.zeros(1, 6), torch.full((1, 6), torch.inf), kronecker=(KroneckerFactors(A, G),)
    )

    def correlations(precision):
        covariance = precision.double().inverse()
        return covariance / torch.outer(covariance.diag(), covariance.diag()).sqrt()

    assert torch.allclose(layer.correlations()[0], torch.kron(correlations(A), correlations(G)))


def test_a_factor_of_zero_and_none_at_all_are_uncorrelated():
    mean, scale = torch.zeros(2, 3), torch.rand(2, 3) + 1
    for layer in (Layer(mean, scale), Layer(mean, scale, torch.zeros(2, 1, 3))):
        assert torch.allclose(layer.correlations(), torch.eye(3).double().expand(2, 3, 3))


def test_too_many_correlations_are_refused():
    wide = torch.ones(1, LARGEST + 1)
    with refuses(f"{LARGEST:,}"):
        Layer(wide, wide, torch.zeros(1, 1, LARGEST + 1)).correlations()


@pytest.mark.parametrize("method", METHODS)
def test_the_posterior_of_a_kept_model_has_scales_and_correlations(method, finished_run):
    posterior = vr.load(finished_run(method)).posterior
    assert posterior
    for layer in posterior.values():
        assert layer.mean.shape == layer.scale.shape
        assert (layer.scale > 0).all()
        correlations = layer.correlations()
        assert torch.allclose(correlations, correlations.mT)
        diagonal = correlations.diagonal(dim1=-2, dim2=-1)
        assert torch.allclose(diagonal, torch.ones_like(diagonal))
        assert (correlations.abs() < 1 + 1e-9).all()
    correlated = any(
        torch.count_nonzero(y.correlations()[0]) > y.mean.shape[-1] for y in posterior.values()
    )
    assert correlated == (method != "radial-vcl")


def test_the_penalty_of_a_kept_model_is_minus_the_log_of_its_posterior(finished_run):
    model = vr.load(finished_run("laplace-kronecker"))
    past, layers = model.method.past, model.posterior
    weights = {
        name: centre + 0.1 * torch.randn_like(centre) for name, centre in past.centre.items()
    }
    total = 0.0
    for name, layer in layers.items():
        if layer.kronecker:
            joint = torch.cat([weights[f"{name}.weight"], weights[f"{name}.bias"][:, None]], 1)
            move = joint.T.flatten() - layer.mean[0]
        else:
            move = weights[name].flatten() - layer.mean[0]
        total += float(move.double() @ layer._precision()[0] @ move.double()) / 2
    assert total == pytest.approx(float(past.penalty(weights)), rel=1e-4)
