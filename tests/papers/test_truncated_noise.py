import math

import pytest
import torch
from scipy import stats

from reports.analysis.truncated_noise import truncated, truncated_variance
from vcl_radial.posteriors import Gaussian


@pytest.mark.parametrize("t", [0.1, 1.0, 2.5])
def test_the_noise_is_a_truncated_normal(t):
    torch.manual_seed(0)
    zero, one = torch.zeros(50), torch.ones(50)
    noise = truncated(t)(zero, one).noise(100).flatten()
    law = stats.truncnorm(-t, t)
    assert float(noise.abs().max()) <= t * (1 + 1e-6)
    assert stats.kstest(noise.numpy(), law.cdf).pvalue > 1e-3
    assert truncated_variance(t) == pytest.approx(law.var(), rel=1e-9)


def test_truncation_far_out_is_none():
    assert truncated_variance(9.0) == pytest.approx(1)
    zero, one = torch.zeros(5), torch.ones(5)
    a, b = (
        family(zero, one).noise(3, torch.Generator().manual_seed(1))
        for family in (truncated(math.inf), Gaussian)
    )
    assert torch.equal(a, b)


def test_density_and_divergence_stay_those_of_the_whole_gaussian():
    torch.manual_seed(0)
    mean, scale = torch.randn(6), torch.rand(6) + 0.1
    whole, cut = Gaussian(mean, scale), truncated(0.1)(mean, scale)
    prior, w = Gaussian(torch.zeros(6), torch.ones(6)), torch.randn(6)
    assert torch.equal(cut.log_prob(w), whole.log_prob(w))
    assert torch.equal(cut.kl(prior), whole.kl(prior))
    assert torch.equal(cut.entropy(), whole.entropy())


def test_two_families_keep_their_own_thresholds():
    families = truncated(0.1), truncated(2.0)
    assert [family.threshold for family in families] == [0.1, 2.0]
