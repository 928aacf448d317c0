"""Small data and networks for the tests of the regression track."""

import torch

from vcl_radial.nn import MLP, PosteriorSettings
from vcl_radial.nn.lanes import Lanes
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.data import RegressionData, Split


def generators(lanes, first=0):
    return [torch.Generator().manual_seed(first + lane) for lane in range(lanes)]


def toy(rows=60, d=3, splits=4, seed=0):
    """A table with a smooth, noisy target, in units far from standard."""
    torch.manual_seed(seed)
    x = torch.randn(rows, d, dtype=torch.float64) * 7 + 30
    y = 500 + 40 * torch.sin((x[:, 0] - 30) / 7) + 5 * torch.randn(rows, dtype=torch.float64)
    cut = rows // 10
    parts = []
    for _ in range(splits):
        order = torch.randperm(rows)
        parts.append(Split(order[cut:], order[:cut]))
    return RegressionData("toy", x, y, tuple(parts), hidden=6)


def lane_data(points=(20, 21, 19), d=3, seed=0):
    torch.manual_seed(seed)
    return LaneData.of([(torch.randn(n, d), torch.randn(n)) for n in points])


def mlp(lane, d=3, hidden=(5,), **settings):
    torch.manual_seed(lane)
    return MLP(d, 1, hidden=hidden, multi_head=False, **settings)


def network(family="gaussian", lanes=3, d=3, hidden=(5,), group_by="layer", noise=0.1, prior=1.0):
    posterior = PosteriorSettings(family, group_by, initial_noise=noise, prior_scale=prior)
    return Lanes([mlp(k, d, hidden, posterior=posterior) for k in range(lanes)], 0)
