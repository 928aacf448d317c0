"""Streams from the settings in a benchmark's TOML file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vcl_radial.config import outside
from vcl_radial.data.backbones import PRETRAINING
from vcl_radial.data.data_files import BACKBONE_KEYS, STREAM_KEYS
from vcl_radial.data.feature_rows import Backbone, with_backbone
from vcl_radial.data.pretrained import efficientnet_lite0
from vcl_radial.data.streams.choices import check_choice, check_first_tasks, checked_order
from vcl_radial.data.streams.datasets import load_dataset
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.permuted import permuted_stream
from vcl_radial.data.streams.split import grouped_stream, split_stream
from vcl_radial.data.streams.tensors import TensorStream
from vcl_radial.errors import DataError, UserError, bad_value

_BUILDERS: Mapping[str, Callable[..., TensorStream]] = {
    "split": split_stream,
    "grouped": grouped_stream,
    "permuted": permuted_stream,
}

_READ = ("kind", "dataset", "checksum", *STREAM_KEYS, *BACKBONE_KEYS)
"""Keys that are not for a builder."""


def build_stream(
    settings: Mapping[str, Any], data_dir: Path | None = None, seed: int = 0
) -> TensorStream:
    """Build the stream that settings describe.

    Args:
        settings: `kind` ("split", "grouped", "permuted" or "package.module:function") and `dataset`
            (see `load_dataset`); optionally `tasks`, `heads` ("multi" or "single"), `class_order`
            (for "split" alone; "seed" draws an order from the seed), `statistics`, `validation`,
            `split_seed`, `flatten`, with the defaults of `split_stream` and `permuted_stream`;
            `first_tasks`, the number of tasks of `TensorStream.first`; `image_size`, `test_share`,
            `test_seed` and `features` of `load_dataset`; and the required `checksum` of the data.
            `features` may also name one of `backbones.PRETRAINING`, with `feature_size`,
            `feature_layers` and `feature_pool` as in `efficientnet_lite0`. A function from outside
            is called like these two, with the keys that are set.
        data_dir: Folder of the data; see `load_dataset`.
        seed: The seed of the run, for class_order = "seed".

    Raises:
        UserError: A setting is missing, unknown or not valid; names it, and the nearest name.
        DataError: A data file is missing or damaged.
    """
    for key in ("kind", "dataset"):
        if key not in settings:
            raise UserError("is missing in the stream's settings: add it", at=key)
    kind = settings["kind"]
    from_outside = outside.is_named(kind)
    if not from_outside:
        check_choice("kind", kind, _BUILDERS)
    _check_keys(settings, split_stream if from_outside else _BUILDERS[kind])
    loading = {key: settings[key] for key in STREAM_KEYS if key in settings}
    computed = loading.get("features") in PRETRAINING and bool(loading.pop("features"))
    data = load_dataset(settings["dataset"], data_dir, **loading)
    expected = settings.get("checksum")
    if expected is not None and expected != (checksum := data.checksum):
        raise DataError(
            f"has the checksum {checksum}, not {expected}: name the data folder "
            "that these settings are of",
            at=settings["dataset"],
        )
    if computed:
        data = with_backbone(data, backbone_of(settings))
    options = {key: value for key, value in settings.items() if key not in _READ}
    if "split_seed" in options:
        options["seed"] = options.pop("split_seed")
    if options.get("class_order") == "seed":
        options["class_order"] = checked_order("seed", data.n_classes, seed)
    if from_outside and options.get("statistics") == "all-tasks":
        del options["statistics"]  # a function that standardises in its own way need not take it
    tasks = options.pop("first_tasks", None)
    stream = _user_stream(kind, data, options) if from_outside else _BUILDERS[kind](data, **options)
    check_first_tasks(tasks, stream.n_tasks)
    return stream if tasks is None else stream.first(tasks)


def backbone_of(settings: Mapping[str, Any]) -> Backbone:
    """The network whose features replace the images of a stream; see `build_stream`.

    Raises:
        UserError: a setting is impossible, or the package with the weights is not installed.
    """
    chosen = {key: settings[key] for key in BACKBONE_KEYS if settings.get(key) is not None}
    return efficientnet_lite0(**{key.removeprefix("feature_"): chosen[key] for key in chosen})


def _check_keys(settings: Mapping[str, Any], build: Callable[..., TensorStream]) -> None:
    """Check that settings have keys of a stream, and of its builder.

    Raises:
        UserError: a key is another one; names the nearest.
    """
    known = [*_READ, "first_tasks", "split_seed", *signature(build).parameters]
    if "class_order" in settings and "class_order" not in known:
        raise UserError(
            'is of kind = "split", and other kinds have their own order: leave it out',
            at="class_order",
        )
    for key in settings:
        check_choice("key of the stream's settings", key, set(known) - {"data", "seed"})


def _user_stream(kind: str, data: ImageData, options: Mapping[str, Any]) -> TensorStream:
    """The stream of a function from outside.

    Raises:
        UserError: the function returns no stream, or one with misleading scores.
    """
    stream = outside.call("kind", kind, data, **options)
    if not isinstance(stream, TensorStream):
        raise bad_value(
            "kind",
            kind,
            f"gives {type(stream).__name__}, not a vcl_radial.data.streams.TensorStream",
        )
    _check_tasks(stream, f"kind = {kind!r}")
    return stream


def _check_tasks(stream: TensorStream, source: str) -> None:
    """Check that scores of a user's own stream are not misleading.

    Raises:
        UserError: a training input is also tested on, or a task has other classes.
    """
    trained_on = torch.zeros(stream.n_rows, dtype=torch.bool)
    trained_on[torch.cat(stream.train)] = True
    held_out: dict[str, tuple[Tensor, ...]] = {"validation": stream.validation, "test": stream.test}
    for name, parts in held_out.items():
        if shared := int(trained_on[torch.cat(parts)].sum()):
            raise UserError(f"{shared} rows of {name} are in train too: leave them out", at=source)
    for task, classes in enumerate(stream.task_classes):
        parts = (stream.train[task], stream.validation[task], stream.test[task])
        if unlisted := set(stream.gather_labels(torch.cat(parts)).tolist()) - set(classes):
            raise UserError(
                f"task {task + 1} has labels {sorted(unlisted)} that its task_classes lack",
                at=source,
            )
