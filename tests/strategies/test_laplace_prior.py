"""The prior of the Laplace methods, as a density."""

import pytest
import torch
from torch.distributions import Normal

from vcl_radial.methods.laplace import LaplaceMethod
from vcl_radial.nn import MLP


@pytest.mark.parametrize("precision", [0.25, 3.0])
@pytest.mark.parametrize("carried", [False, True])
def test_the_penalty_is_minus_the_log_of_the_prior_density(precision, carried):
    """In nats, up to a constant: before the first task, and beside weights that one trained."""
    torch.manual_seed(0)
    network = MLP(3, 2, hidden=(4,), multi_head=False, posterior=None)
    method = LaplaceMethod(network, prior_precision=precision)
    priors = {n: Normal(0.0, precision**-0.5) for n, _ in network.named_parameters()}
    if carried:
        body = {n: w for n, w in network.named_parameters() if n.startswith("body")}
        sharper = {n: torch.rand_like(w) + 5 for n, w in body.items()}
        method.past.carry(body, sharper)
        priors |= {n: Normal(w.detach().clone(), sharper[n] ** -0.5) for n, w in body.items()}

    def minus_log_density():
        named = network.named_parameters()
        return -sum(priors[n].log_prob(w.detach()).sum() for n, w in named)

    values = []
    for _ in range(2):
        with torch.no_grad():
            for weight in network.parameters():
                weight.add_(torch.randn_like(weight))
        values.append((method.penalty().detach(), minus_log_density()))
    (before, expected_before), (after, expected_after) = values
    torch.testing.assert_close(after - before, expected_after - expected_before)
