"""A network of torchvision as a backbone, with weights from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from vcl_radial.data.feature_rows import Backbone, as_colours, in_cells, resized
from vcl_radial.errors import DataError, UserError, bad_value, nearest
from vcl_radial.files.reading import checksum, data_errors

SIZE: Final = 224
MEAN: Final = 0.485, 0.456, 0.406
DEVIATION: Final = 0.229, 0.224, 0.225
"""Mean and standard deviation of ImageNet's colours, for which torchvision's weights are made."""

VERSION: Final = 1


def torchvision_backbone(
    name: str, weights: Path, size: int = SIZE, layers: Sequence[str] = (), pool: int = 1
) -> Backbone:
    """Averages over cells of the outputs of some modules of a network in evaluation mode.

    Args:
        name: a network of `torchvision.models.list_models()`.
        weights: file with its state dict, of tensors alone.
        size: pixels to which both edges of an image are stretched.
        layers: names of modules, as of `named_modules`; empty for the inputs of its last linear
            layer.
        pool: a map is averaged in pool x pool cells.

    Raises:
        UserError: there is no such network or module.
        DataError: the file holds no weights of this network.
    """
    network = _network(name, weights)
    modules = dict(network.named_modules())
    for layer in layers:
        if layer not in modules:
            near = nearest(layer, modules)
            raise bad_value("layers", layer, f"is no module of {name}; did you mean {near!r}?")
    linear = [module for module in modules.values() if isinstance(module, nn.Linear)]
    if not layers and not linear:
        raise bad_value("layers", "", f"must name modules, for {name} has no linear layer")
    with data_errors(weights):
        identity = [VERSION, name, checksum(weights), size, list(layers), pool]

    def load() -> Callable[[Tensor], Tensor]:
        mean, deviation = (torch.tensor(c)[:, None, None] for c in (MEAN, DEVIATION))
        maps: list[Tensor] = []
        for layer in layers:
            modules[layer].register_forward_hook(lambda *call: maps.append(call[-1]))
        if not layers:
            linear[-1].register_forward_pre_hook(
                lambda _, inputs: maps.append(inputs[0].flatten(1))
            )

        def features(images: Tensor) -> Tensor:
            maps.clear()
            network((resized(as_colours(images), size) - mean) / deviation)
            return in_cells(maps, pool)

        return features

    return Backbone(name, identity, load, size)


def _network(name: str, weights: Path) -> nn.Module:
    from torchvision import models

    if name not in (known := models.list_models()):
        raise UserError(
            f"is neither efficientnet-lite0 nor a folder of a finished run nor a network of "
            f"torchvision; the nearest is {nearest(name, known)!r}",
            at=name,
        )
    network: nn.Module = models.get_model(name, weights=None)
    with data_errors(weights, f"save the state dict of {name} by torch.save"):
        if not weights.is_file():
            raise FileNotFoundError
        try:
            state: Any = torch.load(weights, map_location="cpu", weights_only=True)
            network.load_state_dict(state)
        except OSError:
            raise
        except Exception as error:  # a foreign file fails in many ways, and each is one of its kind
            reason = " ".join(str(error).split())[:200]
            raise DataError(
                f"is no state dict of {name} ({reason}); save it by torch.save", at=weights
            ) from None
    return network.eval()
