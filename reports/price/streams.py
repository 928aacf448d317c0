"""The task sequences of all tracks, for a linear model on fixed features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from reports.price.sequences import check
from reports.price.tasks import LinearStream, LinearTask, Points, unit_vectors
from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.bayes_linear import Sums
from vcl_radial.runs import planning
from vcl_radial.tracks.methods import make_method

FEATURES = "the body of naive after the first site"
"""The features of photographs, for all settings."""

HELD_OUT = 0.1
"""Fraction of a slice of a table on which the prior's weight is chosen."""

_ROWS = 2048
_CALIBRATION = 1000
_CPU = torch.device("cpu")

Batches = Iterator[tuple[Tensor, Tensor]]
"""Inputs `[n, ...]` and targets `[n]`."""


Source = tuple[str, int, Any, Sequence[tuple[Batches, Batches, Batches]]]
"""Name of the score, number of outputs C, a model with the features `phi`, and of every task the
learned, held-out and test rows."""


def name_of(spec: Any) -> str:
    """The name of a run's stream: its benchmark, and the table if there are several."""
    table = f"/{spec.data.name}" if spec.TRACK == "regression" else ""
    return f"{spec.benchmark}{table}"


def stream_of(spec: Any, data_dir: Path | None = None) -> LinearStream:
    """The task sequence of a run.

    Raises:
        UserError: the stream has one task, or a separate head for every task.
        DataError: a data file is missing or damaged.
    """
    score, outputs, model, rows = _SOURCES[spec.TRACK](spec, data_dir)
    check(spec.benchmark, len(rows))
    tasks = [_task(model, outputs, *parts) for parts in rows]
    return LinearStream(name_of(spec), score, tasks)


def _images(spec: Any, data_dir: Path | None) -> Source:
    from vcl_radial.tracks.continual.networks import make_network, stream_for

    stream = stream_for(spec.stream, spec.recipe, data_dir, spec.seed)
    check(spec.benchmark, len(stream.task_names), stream.multi_head)
    with seeded_rng(spec.seed, _CPU):
        model: Any = make_method(spec.recipe, make_network(stream, spec.recipe)).network

    def part(task: int, split: Any) -> Batches:
        return _batches(stream.inputs(task, split), stream.labels(task, split))

    model.features.fit(lambda: (x for x, _ in part(0, "train")))
    tasks = [
        (part(task, "train"), part(task, "validation"), part(task, "test"))
        for task in range(len(stream.task_names))
    ]
    return "accuracy", stream.n_classes, model, tasks


def _table(spec: Any, data_dir: Path | None) -> Source:
    from vcl_radial.tracks.networks import network_of_rows
    from vcl_radial.tracks.regression.data import load_data
    from vcl_radial.tracks.regression.splits import LaneSplits, slices

    data, recipe = load_data(spec.data, data_dir), spec.recipe
    lanes = LaneSplits(data, [spec.seed])
    x, y = lanes.train.x[0], lanes.train.y[0]
    with seeded_rng(spec.seed, _CPU):
        network = network_of_rows(recipe, x.shape[1], 1, hidden=recipe.hidden or [data.hidden])
        model: Any = make_method(recipe, network, likelihood=Gaussian()).network
        in_order = [rows[torch.randperm(len(rows))] for rows in slices(x, spec.data.slices or 1)]
    parts = [rows.tensor_split([max(1, round(HELD_OUT * len(rows)))]) for rows in in_order]
    model.features.fit(lambda: torch.split(x[parts[0][1]], _ROWS))
    tasks = [
        (
            _batches(x[learned], y[learned]),
            _batches(x[held_out], y[held_out]),
            _batches(lanes.test.x[0], lanes.test.y[0]),
        )
        for held_out, learned in parts
    ]
    return "rmse", 1, model, tasks


def _photographs(spec: Any, data_dir: Path | None) -> Source:
    """The features come from a network that was trained on the first site (`FEATURES`)."""
    from vcl_radial.data.fundus import evaluation_batches
    from vcl_radial.data.fundus.table import GRADES
    from vcl_radial.features import Body
    from vcl_radial.methods.fixed_features import FeatureModel
    from vcl_radial.tracks.retinopathy.prepare import prepare
    from vcl_radial.tracks.retinopathy.training import Sites, targets, trainer_of

    sites = prepare(spec.needed, data_dir)
    check(spec.benchmark, len(sites))  # before the body is trained
    (naive,) = planning.plan(spec.benchmark, ["naive"], [spec.seed], {})
    trainer = trainer_of(naive.recipe, sites[0].data.size, spec.seed)
    trainer.fit(Sites(naive.recipe, sites[:1], spec.seed))
    body = Body(trainer.method.network)
    model = FeatureModel(body, torch.nn.Identity, multi_head=False)

    def part(site: Any, rows: Any) -> Batches:
        levels = targets(naive.recipe, site.data)
        batches = evaluation_batches(
            site.data, rows, 128, normalisation=site.normalisation, targets=levels
        )
        return ((batch.x, batch.y) for batch in batches)

    splits = [(site, site.split) for site in sites]
    tasks = [(part(s, r.train), part(s, r.validation), part(s, r.test)) for s, r in splits]
    return "auc", len(GRADES), model, tasks


_SOURCES: dict[str, Callable[[Any, Path | None], Source]] = {
    "continual": _images,
    "regression": _table,
    "retinopathy": _photographs,
}


def _batches(x: Tensor, y: Tensor) -> Batches:
    return zip(torch.split(x, _ROWS), torch.split(y, _ROWS), strict=True)


@torch.no_grad()
def _task(
    model: Any, outputs: int, learned: Batches, held_out: Batches, test: Batches
) -> LinearTask:
    parts, validation, test_parts = (
        [(model.phi(x), y) for x, y in batches] for batches in (learned, held_out, test)
    )
    like = torch.zeros(parts[0][0].shape[1], outputs, dtype=torch.float64)
    sums = Sums.over(((phi, unit_vectors(y, outputs)) for phi, y in parts), like)
    step = max(1, sums.count // _CALIBRATION)
    calibration = [(phi[::step], y[::step]) for phi, y in parts]
    return LinearTask(sums, _joined(calibration), _joined(validation), _joined(test_parts))


def _joined(parts: Sequence[tuple[Tensor, Tensor]]) -> Points:
    return Points(torch.cat([phi for phi, _ in parts]), torch.cat([y for _, y in parts]))
