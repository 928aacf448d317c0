"""The task sequences of all tracks as a linear model on fixed features sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from reports.price.sequences import check_one_head, one_task
from reports.price.tasks import LinearStream, LinearTask, Points, unit_vectors
from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.bayes_linear import Sums
from vcl_radial.runs import planning
from vcl_radial.tracks.methods import make_method

FEATURES = "the body of naive after the first site"
"""Those of photographs, whatever the settings."""

HELD_OUT = 0.1
"""The share of a slice of a table that the prior's weight is chosen on."""

_ROWS = 2048
_SOME = 1000
_CPU = torch.device("cpu")

Rows = tuple[Tensor, Tensor]
"""Inputs `[n, ...]` and targets `[n]`."""


def name_of(spec: Any) -> str:
    """The name of a run's stream: its benchmark, and the table if there are several."""
    table = f"/{spec.data.name}" if spec.TRACK == "regression" else ""
    return f"{spec.benchmark}{table}"


def stream_of(spec: Any, data_dir: Path | None = None) -> LinearStream:
    """The task sequence of a run.

    Raises:
        UserError: the stream has one task, or a head for each.
        DataError: a data file is missing or damaged.
    """
    stream = _STREAMS[spec.TRACK](spec, data_dir)
    if len(stream.tasks) < 2:
        raise one_task(spec)
    return stream


def _images(spec: Any, data_dir: Path | None) -> LinearStream:
    from vcl_radial.tracks.continual.networks import make_network, stream_for

    stream = stream_for(spec.stream, spec.recipe, data_dir, spec.seed)
    check_one_head(spec, stream.multi_head)
    with seeded_rng(spec.seed, _CPU):
        model: Any = make_method(spec.recipe, make_network(stream, spec.recipe)).network

    def part(task: int, split: Any) -> Rows:
        return stream.inputs(task, split), stream.labels(task, split)

    model.features.fit(lambda: (x for x, _ in _pieces(*part(0, "train"))))
    tasks = [
        _task(
            name,
            model,
            stream.n_classes,
            _pieces(*part(number, "train")),
            _pieces(*part(number, "validation")),
            _joined(model, _pieces(*part(number, "test"))),
        )
        for number, name in enumerate(stream.task_names)
    ]
    return LinearStream(name_of(spec), "accuracy", stream.n_classes, tasks)


def _table(spec: Any, data_dir: Path | None) -> LinearStream:
    from vcl_radial.tracks.networks import network_of_rows
    from vcl_radial.tracks.regression.data import load_data
    from vcl_radial.tracks.regression.sequence import slices
    from vcl_radial.tracks.regression.training import LaneSplits

    data = load_data(spec.data, data_dir)
    lanes = LaneSplits(data, [spec.seed])
    x, y = lanes.train.x[0], lanes.train.y[0]
    recipe = spec.recipe
    with seeded_rng(spec.seed, _CPU):
        network = network_of_rows(recipe, x.shape[1], 1, hidden=recipe.hidden or [data.hidden])
        model: Any = make_method(recipe, network, likelihood=Gaussian()).network
        in_order = [rows[torch.randperm(len(rows))] for rows in slices(x, spec.data.slices or 1)]
    parts = [rows.tensor_split([max(1, round(HELD_OUT * len(rows)))]) for rows in in_order]
    model.features.fit(lambda: torch.split(x[parts[0][1]], _ROWS))
    test = _joined(model, _pieces(lanes.test.x[0], lanes.test.y[0]))
    tasks = [
        _task(
            f"slice {number + 1}",
            model,
            1,
            _pieces(x[learned], y[learned]),
            _pieces(x[held_out], y[held_out]),
            test,
        )
        for number, (held_out, learned) in enumerate(parts)
    ]
    return LinearStream(name_of(spec), "rmse", 1, tasks)


def _photographs(spec: Any, data_dir: Path | None) -> LinearStream:
    """With the body of a network that was trained on the first site, `FEATURES`."""
    from vcl_radial.data.fundus import evaluation_batches
    from vcl_radial.data.fundus.table import GRADES
    from vcl_radial.features import Body
    from vcl_radial.methods.fixed_features import FeatureModel
    from vcl_radial.tracks.retinopathy.prepare import prepare
    from vcl_radial.tracks.retinopathy.training import Sites, targets, trainer_of

    sites = prepare(spec.needed, data_dir)
    (naive,) = planning.plan(spec.benchmark, ["naive"], [spec.seed], {})
    trainer = trainer_of(naive.recipe, sites[0].data.size, spec.seed)
    trainer.fit(Sites(naive.recipe, sites[:1], spec.seed))
    body = Body(trainer.method.network)
    model = FeatureModel(body, torch.nn.Identity, multi_head=False)

    def pieces(site: Any, rows: Any) -> Iterator[Rows]:
        levels = targets(naive.recipe, site.data)
        batches = evaluation_batches(
            site.data, rows, 128, normalisation=site.normalisation, targets=levels
        )
        return ((batch.x, batch.y) for batch in batches)

    tasks = [
        _task(
            site.name,
            model,
            len(GRADES),
            pieces(site, site.split.train),
            pieces(site, site.split.validation),
            _joined(model, pieces(site, site.split.test)),
        )
        for site in sites
    ]
    return LinearStream(name_of(spec), "auc", len(GRADES), tasks)


_STREAMS: dict[str, Callable[[Any, Path | None], LinearStream]] = {
    "continual": _images,
    "regression": _table,
    "retinopathy": _photographs,
}


def _pieces(x: Tensor, y: Tensor) -> Iterator[Rows]:
    return zip(torch.split(x, _ROWS), torch.split(y, _ROWS), strict=True)


@torch.no_grad()
def _joined(model: Any, pieces: Iterator[Rows]) -> Points:
    parts = [(model.phi(x), y) for x, y in pieces]
    return Points(torch.cat([p for p, _ in parts]), torch.cat([y for _, y in parts]))


def _task(
    name: str,
    model: Any,
    outputs: int,
    learned: Iterator[Rows],
    held_out: Iterator[Rows],
    test: Points,
) -> LinearTask:
    some: list[Points] = []

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for piece in learned:
            some.append(_joined(model, iter([piece])))
            yield some[-1].phi, unit_vectors(some[-1].y, outputs)

    like = torch.zeros(test.phi.shape[1], outputs, dtype=torch.float64)
    sums = Sums.over(batches(), like)
    step = max(1, sums.count // _SOME)
    few = Points(torch.cat([p.phi[::step] for p in some]), torch.cat([p.y[::step] for p in some]))
    return LinearTask(name, sums, few, _joined(model, held_out), test)
