"""The body of a kept model as a backbone: features of images that it learned on other tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from vcl_radial.data.feature_rows import Backbone
from vcl_radial.errors import DataError, UserError
from vcl_radial.features import Body
from vcl_radial.files.reading import checksum
from vcl_radial.methods.fixed_features import FeatureModel
from vcl_radial.models.format import CARD, TENSORS
from vcl_radial.models.model import Model

VERSION = 1


def backbone_of(model: Any, folder: Path) -> Backbone:
    """The inputs of a model's heads, at the means of weights that have a posterior.

    Args:
        model: what `vcl_radial.load` returns for the folder.
        folder: the folder of one run.

    Raises:
        UserError: the model is none of images, or its network has no linear heads.
        DataError: images have another size than the model's.
    """
    if type(model) is not Model:
        raise UserError("keeps no single model of images; name the folder of one run", at=folder)
    network = model.method.network
    try:
        features = network.features if isinstance(network, FeatureModel) else Body(network)
    except UserError:
        raise UserError("has no network with linear heads: name another run", at=folder) from None
    shape: list[int] = model.card["input"]["shape"]

    def load() -> Callable[[Tensor], Tensor]:
        def rows(images: Tensor) -> Tensor:
            try:
                found: Tensor = features(model.inputs(images))
            except DataError as error:
                raise DataError(f"the images of the data: {error}", at=folder) from None
            return found

        return rows

    identity = [VERSION, *(checksum(folder / name) for name in (CARD, TENSORS))]
    size = shape[-1] if len(shape) == 3 else None
    return Backbone(f"{folder.resolve().name}", identity, load, size)
