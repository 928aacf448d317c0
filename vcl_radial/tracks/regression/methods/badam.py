"""BAdam (Kessler et al. 2020): Adam's second moment as the precision of a Gaussian posterior.

Adam finds the maximum a posteriori w*; with v the second moment of the gradients of the objective
per point, the posterior is (their Eqs. 10 and 12; see `vcl_radial.strategies.badam`)

    q(w) = N(w*, 1 / precision),    precision = N sqrt(v) + 1 / prior_scale^2

Predictions are those of the network linearised about w*, as in their Fig. 1:

    y | x ~ N(f(x; w*), sum_i J_i(x)^2 / precision_i + 1 / E tau)
"""

from __future__ import annotations

import torch

from vcl_radial.mixture import Mixture
from vcl_radial.tracks.regression.jacobian import flat_order, jacobians, lane_module
from vcl_radial.tracks.regression.methods.job import Job


def predict(job: Job) -> Mixture:
    """Train point estimates, and read the posterior off the optimiser."""
    network, noise = job.point_network(), job.noise()
    adam = job.fit(network, noise)
    precision = job.train.points[:, None] * adam.root_second()
    precision = (precision + job.of_lanes("prior_scale")[:, None] ** -2).double()
    means, scales = [], []
    for lane, x in enumerate(job.x):
        of_weights = flat_order(network, precision, lane)
        found = [
            (f, (J.square() / of_weights).sum(1) + 1 / noise.mean[lane].double())
            for f, J in jacobians(lane_module(network, lane), x)
        ]
        means.append(torch.cat([f for f, _ in found]))
        scales.append(torch.cat([variance for _, variance in found]).sqrt())
    return Mixture(torch.stack(means)[None], torch.stack(scales)[None])
