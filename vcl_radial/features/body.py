"""The body of a network as features, under the weights that it starts with or the first task's."""

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
    """What a network gives to its heads, under the weights that it has.

    Weights with a posterior are at its mean.

    Args:
        network: whose heads are taken away.

    Raises:
        UserError: it has no linear heads.
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
    """The same under the weights that the network has learned the first task with.

    Until `hold` its weights are trained, under the head that was taken away.

    Attributes:
        held: whether they stay as they are.
    """

    held: Tensor

    def __init__(self, network: nn.Module) -> None:
        super().__init__(network)
        self.register_buffer("held", torch.tensor(False))
        self._resting: list[nn.Parameter] = []

    def outputs(self, x: Tensor) -> Tensor:
        """What the head that was taken away says of inputs, `[B, C]`."""
        outputs: Tensor = self.taken(self.body(x))
        return outputs

    def hold(self) -> None:
        """Let the weights stay as they are."""
        self.held.fill_(True)
        self._rest()

    def release(self) -> None:
        """Let the weights be trained again."""
        self.held.fill_(False)
        self._rest()

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self._rest()

    def _rest(self) -> None:
        """Freeze what is trainable while weights are held; afterwards thaw that and no more."""
        if self.held:
            self._resting += [weight for weight in self.parameters() if weight.requires_grad]
        for weight in self._resting:
            weight.requires_grad_(not self.held)
        if not self.held:
            self._resting = []


def at_mean(body: nn.Module, x: Tensor) -> Tensor:
    """The features of inputs in evaluation mode, at the mean of weights that have a posterior."""
    features: Tensor
    with in_mode(body, training=False):
        if not any(isinstance(module, VariationalWeights) for module in body.modules()):
            features = body(x)
            return features
        # Layers take their means only where gradients are wanted.
        with at_means(body), torch.enable_grad():
            features = body(x)
        return features.detach()


def _linear_head(network: nn.Module) -> nn.Linear | BayesianLinear:
    """The layer of a network with one head, or the first task's."""
    if isinstance(layer := first_head(network), _LINEAR):
        return layer
    raise UserError(
        "options.features: the network has no body with linear heads: choose 'inputs', "
        "'random-relu' or 'patches', or another network"
    )


class BodyWithHead(nn.Module):
    """A body under the head that was taken away from it: a network with one head, to be trained.

    Args:
        features: that share their weights with it.
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
