"""Another start for a network that has not been trained."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.weights import VariationalWeights


@torch.no_grad()
def restarted(network: nn.Module) -> nn.Module:
    """A copy that starts elsewhere: the entries of every weight tensor stand in another order.

    A start whose entries are drawn independently from one distribution is as likely in any order,
    so that the copy's start has the distribution of the network's, whatever that is. Of a posterior
    the means are put in another order; its scales and its prior are those of a first task. The
    heads to come of a `MultiHead` start elsewhere too. Frozen parameters stay as they are.

    Args:
        network: with any modules and parameters; it stays as it is.
    """
    network = copy.deepcopy(network)
    for parent in list(network.modules()):
        if isinstance(parent, MultiHead):
            parent.seed.random_(2**31)
        for name, child in parent.named_children():
            if isinstance(child, VariationalWeights):
                weight, bias = child.mean()
                bias = None if bias is None else _in_another_order(bias)
                new = child.settings.make_weights(_in_another_order(weight), bias)
                setattr(parent, name, new.to(weight.device))
                for part, old in child.named_parameters():
                    if not old.requires_grad:
                        new.get_parameter(part).requires_grad_(False).copy_(old)
    posteriors = [m for m in network.modules() if isinstance(m, VariationalWeights)]
    of_posteriors = {id(p) for module in posteriors for p in module.parameters()}
    for parameter in network.parameters():
        if id(parameter) not in of_posteriors and parameter.requires_grad:
            parameter.copy_(_in_another_order(parameter))
    return network


def _in_another_order(weights: Tensor) -> Tensor:
    order = torch.randperm(weights.numel(), device="cpu").to(weights.device)
    return weights.flatten()[order].view_as(weights)
