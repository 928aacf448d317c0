"""What a method is given, and what several methods do with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from vcl_radial.noise_precision import NoisePrecision
from vcl_radial.tracks.regression.adam import LaneAdam
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.fit import FitSettings, OnStep, fit
from vcl_radial.tracks.regression.layers import LaneLayer, PointLayer
from vcl_radial.tracks.regression.network import LaneNetwork, initial_means
from vcl_radial.tracks.regression.settings import Recipe


@dataclass(frozen=True)
class Job:
    """Lanes to train together and the inputs to predict.

    Attributes:
        recipes: of each lane, all of one shape.
        seeds: of each lane.
        train: the standardised training data.
        x: the standardised inputs of the predictions, `[R, n, d]`.
        hidden: units of the hidden layers.
        on_step: called with the steps that are done.
    """

    recipes: Sequence[Recipe]
    seeds: Sequence[int]
    train: LaneData
    x: Tensor
    hidden: Sequence[int]
    on_step: OnStep = lambda steps: None

    @property
    def recipe(self) -> Recipe:
        """What the lanes have in common."""
        return self.recipes[0]

    def fit(
        self,
        network: LaneNetwork,
        noise: NoisePrecision,
        part: LaneData | None = None,
        done: int = 0,
    ) -> LaneAdam:
        """Train a network of the lanes.

        Args:
            network: changed in place.
            noise: changed in place.
            part: of the training data; None for all of them.
            done: steps that were made before.
        """
        recipe = self.recipe
        return fit(
            network,
            noise,
            self.train if part is None else part,
            self.of_lanes("learning_rate"),
            FitSettings(recipe.steps, recipe.batch_size, recipe.train_samples),
            lambda steps: self.on_step(done + steps),
            kl_weights=self.of_lanes("kl_weight"),
        )

    def of_lanes(self, key: str) -> Tensor:
        """A number of each lane's recipe, `[R]`."""
        return torch.tensor([getattr(recipe, key) for recipe in self.recipes])

    def generators(self, purpose: str) -> list[torch.Generator]:
        """A generator for each lane, from its seed and what it is for."""
        return [torch.Generator().manual_seed(derived(seed, purpose)) for seed in self.seeds]

    def initial_means(self) -> list[tuple[Tensor, Tensor]]:
        """Of each layer: means of weights `[R, out, in]` and biases `[R, out]`."""
        widths = [self.x.shape[-1], *self.hidden, 1]
        return initial_means(widths, [derived(seed, "start") for seed in self.seeds])

    def network(self, layers: Sequence[LaneLayer]) -> LaneNetwork:
        """A network that draws from the lanes' own generators."""
        return LaneNetwork(layers, self.generators("training"))

    def point_network(self) -> LaneNetwork:
        """A network of point estimates."""
        scale = self.of_lanes("prior_scale")
        return self.network([PointLayer(w, b, scale) for w, b in self.initial_means()])

    def noise(self, points: Tensor | None = None) -> NoisePrecision:
        """The noise precision under its first prior, for so many points; None for all."""
        prior = self.of_lanes("noise_shape"), self.of_lanes("noise_rate")
        points = self.train.points if points is None else points
        return NoisePrecision(points, prior, self.of_lanes("initial_precision"))

    def repeated(self, times: int) -> Job:
        """Every lane so many times, each with a seed of its own."""
        return replace(
            self,
            recipes=[recipe for recipe in self.recipes for _ in range(times)],
            seeds=[derived(seed, f"member {k}") for seed in self.seeds for k in range(times)],
            train=LaneData(
                self.train.x.repeat_interleave(times, 0),
                self.train.y.repeat_interleave(times, 0),
                self.train.points.repeat_interleave(times, 0),
            ),
            x=self.x.repeat_interleave(times, 0),
        )

    @torch.no_grad()
    def draws(self, network: LaneNetwork, samples: int) -> Tensor:
        """f(x; w) under draws of the weights that all rows share, `[T, R, n]`.

        They depend on a lane's seed alone, not on what training has drawn.
        """
        return torch.cat([*network.functions(samples, self.x, self.generators("prediction"))])


def derived(seed: int, purpose: str) -> int:
    """A seed of its own for each purpose."""
    (state,) = np.random.SeedSequence([seed, *purpose.encode()]).generate_state(1)
    return int(state)
