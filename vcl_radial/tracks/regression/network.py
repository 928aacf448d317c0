"""R networks of one shape as lanes: layers in a row, with one tensor of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from vcl_radial.nn.linear import he_normal
from vcl_radial.predict import own_randomness
from vcl_radial.tracks.regression.layers import Drawn, LaneLayer

_AT_ONCE = 2**22
"""Hidden units of rows and draws that `functions` holds at a time."""

Noise = list[Sequence[Tensor]]
"""What is random in the draws of each layer, `[R, S, ...]` each."""


def initial_means(widths: Sequence[int], seeds: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Means of every layer's weights `[R, out, in]` and biases `[R, out]`: He's, a seed a lane."""
    lanes = []
    for seed in seeds:
        with own_randomness(seed, torch.device("cpu")):
            lanes.append([he_normal(outputs, inputs) for inputs, outputs in pairwise(widths)])
    weights = [torch.stack(lane) for lane in zip(*lanes, strict=True)]
    return [(weight, torch.zeros(weight.shape[:2])) for weight in weights]


class LaneNetwork:
    """Layers with ReLU between them, and one output.

    Args:
        layers: of all lanes.
        generators: of each lane, for what is random in its draws.
    """

    def __init__(self, layers: Sequence[LaneLayer], generators: Sequence[torch.Generator]) -> None:
        self.layers, self.generators = list(layers), list(generators)
        initial = [layer.initial() for layer in layers]
        self.sizes = [part.shape[1] for part in initial]
        self.parameters = torch.cat(initial, dim=1)
        """`[R, P]`"""

    @property
    def lanes(self) -> int:
        """R."""
        return len(self.parameters)

    def parts(self) -> Sequence[Tensor]:
        """Each layer's own columns of the parameters."""
        return torch.split(self.parameters, self.sizes, dim=1)

    def noise(
        self,
        n: int,
        samples: int = 1,
        rows: int = 1,
        generators: Sequence[torch.Generator] | None = None,
    ) -> list[Noise]:
        """What is random in n times `samples` draws: n entries for `draw`.

        Args:
            n: how many entries.
            samples: draws of an entry, S.
            rows: of the batch that each draw will see, where rows have randomness of their own.
            generators: in place of the lanes' own.
        """
        layers = [
            [part.view(self.lanes, n, samples, *part.shape[2:]).unbind(1) for part in parts]
            for parts in self.random(n * samples, rows, generators)
        ]
        return [[[part[k] for part in parts] for parts in layers] for k in range(n)]

    def random(
        self,
        draws: int,
        rows: int = 1,
        generators: Sequence[torch.Generator] | None = None,
    ) -> list[list[Tensor]]:
        """What is random in so many draws of each layer, `[R, draws, ...]`; else as `noise`."""
        found = []
        for layer in self.layers:
            of_lanes = [
                layer.noise(draws, rows, lane, generator)
                for lane, generator in enumerate(generators or self.generators)
            ]
            found.append([torch.stack(part) for part in zip(*of_lanes, strict=True)])
        return found

    def draw(self, noise: Noise) -> list[Drawn]:
        """Every layer under the draws that this noise makes."""
        return [
            layer.draw(part, epsilon)
            for layer, part, epsilon in zip(self.layers, self.parts(), noise, strict=True)
        ]

    def functions(
        self, samples: int, x: Tensor, generators: Sequence[torch.Generator] | None = None
    ) -> Iterator[Tensor]:
        """f(x; w) under draws of the weights that all rows share, some at a time, `[S, R, n]`.

        It is computed lane by lane, so that it is the same to the last bit whichever lanes are
        beside one another: what is left at the end of vector instructions is rounded otherwise, and
        so are products of matrices that begin elsewhere in memory.

        Args:
            samples: how many draws.
            x: inputs of each lane, `[R, n, d]`.
            generators: in place of the lanes' own.
        """
        random = self.random(samples, generators=generators)
        widest = max(layer.shape[0] for layer in self.layers)
        at_once = max(1, _AT_ONCE // (x.shape[1] * widest))
        for start in range(0, samples, at_once):
            found, count = [], min(at_once, samples - start)
            for lane in range(self.lanes):
                one, some = slice(lane, lane + 1), slice(start, start + at_once)
                drawn = [
                    layer.draw(part[one].clone(), [epsilon[one, some] for epsilon in of_layer])
                    for layer, part, of_layer in zip(self.layers, self.parts(), random, strict=True)
                ]
                # Where nothing is random, all draws are one.
                found.append(outputs(drawn, x[one].clone())[0].expand(count, -1))
            yield torch.stack(found, dim=1)

    def draw_with_kl(self, noise: Noise, factor: Tensor) -> tuple[list[Drawn], Tensor | float]:
        """`draw`, and what to add to the objective for factor * KL; see `LaneLayer`."""
        pairs = [
            layer.draw_with_kl(part, epsilon, factor)
            for layer, part, epsilon in zip(self.layers, self.parts(), noise, strict=True)
        ]
        return [drawn for drawn, _ in pairs], sum(term for _, term in pairs)

    def kl(self) -> Tensor:
        """KL(q || p) of each lane, `[R]` in nats."""
        pairs = zip(self.layers, self.parts(), strict=True)
        return torch.stack([layer.kl(part) for layer, part in pairs]).sum(0)

    def carry(self) -> None:
        """Make the posterior the prior."""
        for layer, part in zip(self.layers, self.parts(), strict=True):
            layer.carry(part.detach())


def outputs(drawn: Sequence[Drawn], x: Tensor) -> Tensor:
    """f(x; w) of every lane and draw, `[R, S, B]`.

    Args:
        drawn: of each layer.
        x: inputs `[R, B, d]`.
    """
    lanes, samples = drawn[0].weight.shape[:2]
    h = x.unsqueeze(1).expand(-1, samples, -1, -1)
    for place, (weight, bias, mask) in enumerate(drawn):
        h = h.relu() if place else h
        h = h if mask is None else h * mask
        # One batched product for lanes and samples together.
        flat = torch.baddbmm(
            bias.reshape(lanes * samples, 1, -1),
            h.reshape(lanes * samples, *h.shape[2:]),
            weight.reshape(lanes * samples, *weight.shape[2:]).transpose(1, 2),
        )
        h = flat.view(lanes, samples, *flat.shape[1:])
    return h.squeeze(-1)
