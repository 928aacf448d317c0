"""A new random start for a network that has not been trained."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.weights import VariationalWeights


@torch.no_grad()
def restarted(network: nn.Module) -> nn.Module:
    """A copy with a new random start: the entries of every weight tensor are permuted.

    If the entries are drawn independently from one distribution, every order is equally likely, so
    the start of the copy has the same distribution as the start of the network. The means of a
    posterior are permuted; its scales and its prior are the same as before a first task. Future
    heads of a `MultiHead` get a new start too. Frozen parameters do not change.

    Args:
        network: any network; it does not change.
    """
    network = copy.deepcopy(network)
    for parent in list(network.modules()):
        if isinstance(parent, MultiHead):
            parent.seed.random_(2**31)
        for name, child in parent.named_children():
            if isinstance(child, VariationalWeights):
                weight, bias = child.mean()
                bias = None if bias is None else _permuted(bias)
                new = child.settings.make_weights(_permuted(weight), bias)
                setattr(parent, name, new.to(weight.device))
                for part, old in child.named_parameters():
                    if not old.requires_grad:
                        new.get_parameter(part).requires_grad_(False).copy_(old)
    posteriors = [m for m in network.modules() if isinstance(m, VariationalWeights)]
    posterior_parameters = {id(p) for module in posteriors for p in module.parameters()}
    for parameter in network.parameters():
        if id(parameter) not in posterior_parameters and parameter.requires_grad:
            parameter.copy_(_permuted(parameter))
    return network


def _permuted(weights: Tensor) -> Tensor:
    order = torch.randperm(weights.numel(), device="cpu").to(weights.device)
    return weights.flatten()[order].view_as(weights)
