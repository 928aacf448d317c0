import math

import pytest
import torch
from scipy import stats

from reports.analysis.projections import draws, share_near
from vcl_radial.posteriors import Gaussian, Radial


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("D", [2, 10, 2500])
def test_a_gaussian_in_a_plane_is_the_gaussian_of_two_weights_whatever_d_is(D):
    _, plane = draws(Gaussian, D, 2000)
    assert stats.kstest(plane.norm(dim=1).numpy(), stats.rayleigh.cdf).pvalue > 1e-3
    assert share_near(plane) == pytest.approx(1 - 2**-0.25, abs=0.04)


@pytest.mark.parametrize("D", [10, 2500])
def test_the_distance_that_is_kept_is_that_of_all_weights(D):
    kept, _ = draws(Gaussian, D, 2000)
    distance = kept.norm(dim=1) * math.sqrt(D)
    assert stats.kstest(distance.numpy(), stats.chi(D).cdf).pvalue > 1e-3
    kept, plane = draws(Radial, D, 2000)
    assert stats.kstest(kept.norm(dim=1).numpy(), stats.halfnorm.cdf).pvalue > 1e-3
    # Both ways show one direction, and E ||w||^2 = D.
    cosine = torch.cosine_similarity(kept, plane)
    torch.testing.assert_close(cosine, torch.ones_like(cosine))
    squares = plane.square().mean(1)
    assert abs(squares.mean() - 1) < 5 * squares.std() / math.sqrt(2000)
