"""Small data and networks for the tests of the regression track."""

import torch

from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import MLP, PosteriorSettings, variational_weights
from vcl_radial.nn.lanes import Lanes
from vcl_radial.optimizers.schedules import linear_tail
from vcl_radial.tracks.regression.data import RegressionData, Split
from vcl_radial.tracks.regression.execute import TableRuns
from vcl_radial.tracks.regression.settings import DataSettings, Run
from vcl_radial.training.lane_data import LaneData
from vcl_radial.training.lanes import LaneRun, LaneTrainer


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


def networks(family="gaussian", lanes=3, d=3, hidden=(5,), group_by="layer", noise=0.1, prior=1.0):
    posterior = PosteriorSettings(family, group_by, initial_noise=noise, prior_scale=prior)
    return [mlp(k, d, hidden, posterior=posterior) for k in range(lanes)]


def network(*args, **settings):
    return Lanes(networks(*args, **settings), 0)


def trained(
    networks, data, rates, steps, batch_size, *, noise=(), kl_weight=(), precision=None, **settings
):
    """The trainer of these networks after the task; other settings are its own."""
    samples, lanes = settings.pop("samples", 1), []
    for lane, made in enumerate(networks):
        cls = VCL if [*variational_weights(made, [0])] else Naive
        method = cls(
            made,
            likelihood=Gaussian(*noise),
            train_samples=samples,
            kl_weight=kl_weight[lane] if kl_weight else 1.0,
        )
        lanes.append(
            LaneRun(
                method,
                lambda task, lane=lane: lane,
                rates[lane],
                schedule=linear_tail,
                prior_precision={} if precision is None else precision(lane, made),
            )
        )
    trainer = LaneTrainer(lanes, batch_size=batch_size, steps=steps, **settings)
    next(trainer.steps([data]))
    return trainer


def table_runs(data, splits, recipes, slices=None, validation=None):
    """Runs that train together on the splits of a table."""
    runs = [
        Run(
            benchmark="b",
            method="m",
            seed=split,
            data=DataSettings(set="diabetes", slices=slices, validation=validation or 0.2),
            recipe=recipe,
            evaluate_on="test" if validation is None else "validation",
        )
        for split, recipe in zip(splits, recipes, strict=True)
    ]
    return TableRuns(runs, data, lambda lane, step: None)


def finished(*args, **settings):
    """These runs, after their training."""
    runs = table_runs(*args, **settings)
    for _ in runs.steps():
        pass
    return runs.lanes


def final_scores(*args, **settings):
    """The scores of these runs after the last slice."""
    return [[*run.after.values()][-1] for run in finished(*args, **settings)]
