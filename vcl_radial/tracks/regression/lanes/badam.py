"""BAdam (Kessler et al. 2020): Adam's second moment as the precision of a Gaussian posterior.

Adam finds the maximum a posteriori w*; with v the second moment of the gradients of the objective
per point, the posterior is (their Eqs. 10 and 12; see `vcl_radial.methods.badam`)

    q(w) = N(w*, 1 / precision),    precision = N sqrt(v) + 1 / prior_scale^2

Predictions are from the network linearised about w*, as in their Fig. 1:

    y | x ~ N(f(x; w*), sum_i J_i(x)^2 / precision_i + 1 / E tau)
"""

from __future__ import annotations

from typing import ClassVar

import torch

from vcl_radial.curvature.dense import flat
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.nn.lane_adam import per_lane
from vcl_radial.tracks.regression.jacobian import jacobians, lane_network
from vcl_radial.tracks.regression.lane_method import LaneMethod


class Lanes(LaneMethod):
    """BAdam in lanes: point estimates, whose posterior is read from the optimiser's state."""

    fixed: ClassVar = {"linearised": True}
    state_predicts = False

    def predict(self) -> Mixture:
        """Predict by the network linearised about its weights."""
        step, noise = self.trainer.step, self.noise
        precision = {
            name: per_lane(noise.points, value) * step.adam.root_second(step.adam_index(name))
            + per_lane(step.prior_precision[name], value)
            for name, value in self.lanes.points.items()
        }
        means, scales = [], []
        for lane, x in enumerate(self.x):
            network = lane_network(self.lanes, lane)
            weight_precision = flat(precision[name][lane] for name, _ in network.named_parameters())
            moments = [
                (f, (J.square() / weight_precision).sum(1) + 1 / noise.mean[lane].double())
                for f, J in jacobians(network, x)
            ]
            means.append(torch.cat([f for f, _ in moments]))
            scales.append(torch.cat([variance for _, variance in moments]).sqrt())
        return Mixture(torch.stack(means)[None], torch.stack(scales)[None])
