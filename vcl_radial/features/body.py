"""The body of a network as features, with its initial weights or its first task's weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.errors import UserError
from vcl_radial.features.base import Features
from vcl_radial.likelihoods.predict import in_mode
from vcl_radial.nn import BayesianLinear, SingleHead, VariationalWeights
from vcl_radial.nn.heads import first_head
from vcl_radial.nn.weights import at_means

_LINEAR = nn.Linear | BayesianLinear


class Body(Features):
    """The inputs of a network's heads as features, under its current weights.

    Weights with a posterior have the value of the posterior's mean.

    Args:
        network: a network; its heads are removed.

    Raises:
        UserError: The network has no linear heads.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.taken = _linear_head(network)
        self.size = self.taken.in_features
        network.head = _NoHead()
        self.body = network

    def forward(self, x: Tensor) -> Tensor:
        """`[B, D]`."""
        return at_mean(self.body, x)


class FirstTaskBody(Body):
    """The features of a network's body with the weights that it learned on the first task.

    The weights are trained, with the removed head, until `hold` is called.

    Attributes:
        held: whether the weights are fixed.
    """

    held: Tensor

    def __init__(self, network: nn.Module) -> None:
        super().__init__(network)
        self.register_buffer("held", torch.tensor(False))
        self._resting: list[nn.Parameter] = []

    def outputs(self, x: Tensor) -> Tensor:
        """The outputs of the removed head for inputs, `[B, C]`."""
        outputs: Tensor = self.taken(self.body(x))
        return outputs

    def hold(self) -> None:
        """Fix the weights."""
        self.held.fill_(True)
        self._rest()

    def release(self) -> None:
        """Make the weights trainable again."""
        self.held.fill_(False)
        self._rest()

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self._rest()

    def _rest(self) -> None:
        """Freeze trainable weights while they are held; afterwards unfreeze only these weights."""
        if self.held:
            self._resting += [weight for weight in self.parameters() if weight.requires_grad]
        for weight in self._resting:
            weight.requires_grad_(not self.held)
        if not self.held:
            self._resting = []


def at_mean(body: nn.Module, x: Tensor) -> Tensor:
    """The features of inputs in evaluation mode, at the means of weights with a posterior."""
    features: Tensor
    with in_mode(body, training=False):
        if not any(isinstance(module, VariationalWeights) for module in body.modules()):
            features = body(x)
            return features
        # Layers use their means only where gradients are enabled.
        with at_means(body), torch.enable_grad():
            features = body(x)
        return features.detach()


def _linear_head(network: nn.Module) -> nn.Linear | BayesianLinear:
    """The output layer of a network with one head, or of the first task's head."""
    if isinstance(layer := first_head(network), _LINEAR):
        return layer
    raise UserError(
        "options.features: the network has no body with linear heads: choose 'inputs', "
        "'random-relu' or 'patches', or another network"
    )


class BodyWithHead(nn.Module):
    """A body with the head that was removed from it: a trainable network with one head.

    Args:
        features: features that share their weights with this network.
    """

    def __init__(self, features: Body) -> None:
        super().__init__()
        self.body, self.head = features.body, SingleHead(lambda: features.taken)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, C]`."""
        outputs: Tensor = self.head(self.body(x), 0)
        return outputs


class _NoHead(nn.Module):
    def forward(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        return x
