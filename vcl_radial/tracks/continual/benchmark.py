"""`benchmark` in Python: the task sequence of a benchmark, for a user's training loop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcl_radial.data.data_files import checked_folder
from vcl_radial.data.streams.tensors import TensorStream
from vcl_radial.errors import UserError
from vcl_radial.runs import catalogue, planning
from vcl_radial.tracks.continual.networks import stream_for
from vcl_radial.tracks.continual.track import Continual


def benchmark(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    data_dir: str | Path | None = None,
) -> TensorStream:
    """The tasks of a benchmark of images, as runs get them.

    `for task in benchmark(name)` gives each task with its inputs and labels; `to_avalanche` of
    `vcl_radial.data.streams` makes an Avalanche benchmark of them.

    Args:
        name: a benchmark of the track continual, or the path of a .toml file.
        settings: keys of the data that replace the benchmark's, such as `"stream.tasks"`.
        seed: seed of the run; a benchmark may draw the order of the classes from it.
        data_dir: the folder of the data; None for $VCL_RADIAL_DATA, else they are downloaded once.

    Raises:
        UserError: there is no such benchmark, it has no task sequence, or a setting is wrong.
        DataError: a data file is missing or damaged.
    """
    track, folder = catalogue.track_of(catalogue.load("benchmark", name)), checked_folder(data_dir)
    if not isinstance(track, Continual):
        raise UserError(
            f"is a benchmark of the track {track.name}, which has no sequence of images; use run()",
            at=name,
        )
    (run, *_) = planning.plan(name, (), [seed], settings)
    run = run.on_data(folder)
    return stream_for(run.stream, run.recipe, folder, seed)
