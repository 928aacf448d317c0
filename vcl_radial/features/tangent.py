"""The tangent features of a body: a model that is linear in changes of the initial weights.

Every output of a head has a separate copy of the body's weights, which changes along m random
directions of rank one in every layer,

    W_l = W_l0 + sum_k v_lk a_lk b_lk',    a_lk ~ N(0, I),   b_lk ~ N(0, I)

and the network is expanded to first order in v around the start (Jacot, Gabriel and Hongler 2018;
Lee et al. 2019): with phi the body and a fixed readout u ~ N(0, I / H) of its H outputs,

    f(x) = w' phi(x) + sum_lk v_lk t_lk(x),    t_lk = (a_lk' g_l) (b_lk' h_l)

for the layer's input h_l and the gradient g_l of u' phi at its output, summed over positions for a
convolution. So w and v have the head's conjugate posterior, and the body does not change, so that
the statistics of earlier tasks stay valid. On average over the directions, t_l(x)' t_l(z) / m is
the layer's part of the neural tangent kernel, <g_l(x), g_l(z)> <h_l(x), h_l(z)> for a linear layer.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vcl_radial.curvature.fisher import LARGEST_CHUNK, patches
from vcl_radial.curvature.gauss_newton import layers_in_full
from vcl_radial.errors import UserError
from vcl_radial.features.base import InputsOf
from vcl_radial.features.body import Body
from vcl_radial.likelihoods.predict import in_mode
from vcl_radial.nn.calls import recorded_calls


class Tangent(Body):
    """phi(x) and t_l(x) of every linear layer and convolution, `[B, H + m L]`.

    phi, and the t of each layer, are scaled to a mean squared length of 1 over the first task's
    inputs, so that all layers have the same weight. A bias is a weight of an input 1.

    Args:
        network: a network of point estimates; its heads are removed.
        directions: m, the number of directions per layer.

    Raises:
        UserError: The network has no linear heads, or its body has no linear layer.
    """

    readout: Tensor
    scales: Tensor

    def __init__(self, network: nn.Module, directions: int = 1500) -> None:
        super().__init__(network)
        self.layers = layers_in_full(self.body, dict(self.body.named_parameters()))
        if not self.layers:
            raise UserError(
                "options.features = 'tangent': the network's body has no linear layer and no plain "
                "convolution: choose 'body', or another network"
            )
        self.register_buffer("readout", torch.randn(self.size) * self.size**-0.5)
        for k, layer in enumerate(self.layers.values()):
            out, inputs = layer.weight.flatten(1).shape
            inputs += layer.bias is not None
            self.register_buffer(f"left_{k}", torch.randn(directions, out))
            self.register_buffer(f"right_{k}", torch.randn(directions, inputs))
        self.register_buffer("scales", torch.ones(1 + len(self.layers)))
        self.size += directions * len(self.layers)

    def fit(self, inputs: InputsOf) -> None:
        """Scale every part to a mean square length of 1."""
        count, squares = 0, torch.zeros_like(self.scales)
        for x in inputs():
            count += len(x)
            squares += torch.stack([part.square().sum() for part in self._parts(x)])
        self.scales.copy_((squares / max(count, 1)).clamp(min=1e-12).rsqrt())

    def forward(self, x: Tensor) -> Tensor:
        """`[B, D]`."""
        parts = zip(self.scales.tolist(), self._parts(x), strict=True)
        return torch.cat([scale * part for scale, part in parts], dim=1)

    def _parts(self, x: Tensor) -> Iterator[Tensor]:
        """The parts: phi `[B, H]`, then t `[B, m]` of every layer."""
        layers = [*self.layers.values()]
        with (
            in_mode(self.body, training=False),
            torch.enable_grad(),
            recorded_calls(layers) as calls,
        ):
            # The weights are frozen, so the graph starts at the inputs.
            phi = self.body(x.detach().requires_grad_())
            projection = (phi @ self.readout.to(phi)).sum()
        called = {call.layer: call for call in calls}
        if not len(calls) == len(called) == len(layers):
            raise UserError(
                "options.features = 'tangent': the network's body must call every layer once in a "
                "pass: choose 'body', or another network"
            )
        gradients = torch.autograd.grad(projection, [called[layer].output for layer in layers])
        yield phi.detach().to(self.readout)
        for k, (layer, gradient) in enumerate(zip(layers, gradients, strict=True)):
            left, right = self.get_buffer(f"left_{k}"), self.get_buffer(f"right_{k}")
            h, g = called[layer].inputs.detach().to(left), gradient.to(left)
            if layer.bias is not None:
                right, bias = right[:, :-1], right[:, -1]
            if isinstance(layer, nn.Linear):
                products = h @ right.T if layer.bias is None else torch.addmm(bias, h, right.T)
                yield (g @ left.T) * products
                continue
            t = torch.cat([*_image_tangents(layer, h, g, left, right)])
            yield t if layer.bias is None else t + (g.sum((2, 3)) @ left.T) * bias


def _image_tangents(
    layer: nn.Conv2d, h: Tensor, g: Tensor, left: Tensor, right: Tensor
) -> Iterator[Tensor]:
    """a_k' (sum over places of g h') b_k of a convolution, `[B, m]` for some images at a time."""
    images = max(1, LARGEST_CHUNK // right.numel())
    for h_part, gradients in zip(torch.split(h, images), torch.split(g, images), strict=True):
        weight_gradients = gradients.flatten(2) @ patches(layer, h_part).mT
        yield ((left @ weight_gradients) * right).sum(2)
