"""The parameters of a network that a task uses."""

from __future__ import annotations

from collections.abc import Collection

from torch import nn

from vcl_radial.nn.heads import MultiHead, SingleHead


def parameters_of_heads(network: nn.Module) -> set[int]:
    """The identities (`id`) of all parameters that belong to heads."""
    return {
        id(parameter)
        for module in network.modules()
        if isinstance(module, MultiHead | SingleHead)
        for parameter in module.parameters()
    }


def parameters_in_use(network: nn.Module, tasks: Collection[int]) -> dict[str, nn.Parameter]:
    """The trainable parameters of the body and of the heads of these tasks, by name."""
    labels = {str(task) for task in tasks}
    head_parameters = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, MultiHead)
        for label, head in module.heads.items()
        if label not in labels
        for parameter in head.parameters()
    }
    return {
        name: parameter
        for name, parameter in network.named_parameters()
        if parameter.requires_grad and id(parameter) not in head_parameters
    }
