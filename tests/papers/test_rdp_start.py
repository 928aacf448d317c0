import math

import pytest
import torch

from reports.seeds.pruning.lenet.start import rdp_weights
from reports.seeds.pruning.settings import LeNetRecipe
from vcl_radial.nn.linear import he_normal
from vcl_radial.posteriors.rdp import HalfCauchyPrior


def recipe(length, spread, prior_scale, prior_length):
    return LeNetRecipe(
        length=length, spread=spread, prior_scale=prior_scale, prior_length=prior_length
    )


@pytest.mark.parametrize("grouping", ["row", "double"])
@pytest.mark.parametrize("shape", [(6, 3, 5, 5), (12, 30)])
def test_the_means_stay_and_lengths_widths_and_priors_are_those_of_the_recipe(grouping, shape):
    torch.manual_seed(0)
    weight = he_normal(shape[0], math.prod(shape[1:])).view(shape)
    layer = rdp_weights(weight, torch.ones(shape[0]), grouping, recipe(0.8, 0.3, 0.01, 0.6))
    mean, bias = layer.mean()
    torch.testing.assert_close(mean, weight, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(bias, torch.ones(shape[0]))
    for block in layer.factor_blocks().values():
        q = block.posterior
        assert q.direction.mean_length().item() == pytest.approx(0.8, rel=1e-5)
        torch.testing.assert_close(q.factors.scale, torch.full_like(q.factors.scale, 0.3))
        assert block.prior == HalfCauchyPrior(0.01, 0.6)


def test_draws_scatter_as_the_lengths_say():
    torch.manual_seed(0)
    weight = he_normal(4, 200)
    layer = rdp_weights(weight, None, "row", recipe(0.8, 1e-4, 1.0, 0.9))
    draws = torch.stack([layer.sample()[0] for _ in range(200)])
    # E ||w||^2 = ||E w||^2 / A^2: a direction has length 1, its mean the length A.
    ratio = draws.square().sum(-1).mean(0) / weight.square().sum(-1)
    torch.testing.assert_close(ratio, torch.full((4,), 1 / 0.8**2), rtol=1e-3, atol=0)
