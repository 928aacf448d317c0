"""Low-rank posteriors as dense matrices, in float64; gradients pass through."""

import torch
from torch.distributions import MultivariateNormal


def precision_of(q):
    """diag(1 / scale^2) + (U / scale)' (U / scale), `[..., D, D]`."""
    scale = q.scale.double()
    rows = q.factor.double() / scale.unsqueeze(-2)
    return torch.diag_embed(scale**-2) + rows.mT @ rows


def dense(q):
    """The normal distribution of this mean and precision."""
    return MultivariateNormal(q.mean.double(), precision_matrix=precision_of(q))
