"""Inputs and shared helpers of lane training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.noise_precision import NoisePrecision
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.nn.lane_step import LaneStep
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.mlp import MLP
from vcl_radial.system.seeds import seed_of
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.fit import FitSettings, OnStep, fit
from vcl_radial.tracks.regression.settings import Recipe


@dataclass(frozen=True)
class Job:
    """Lanes to train together and the inputs to predict.

    Attributes:
        recipes: recipe of each lane, all of one shape.
        seeds: seed of each lane.
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
        """The first recipe, for keys that all lanes share."""
        return self.recipes[0]

    def fit(
        self,
        lanes: Lanes,
        noise: NoisePrecision,
        part: LaneData | None = None,
        done: int = 0,
        generators: Sequence[torch.Generator] | None = None,
    ) -> LaneStep:
        """Train networks of the lanes.

        Args:
            lanes: the lanes, changed in place.
            noise: the noise precision, changed in place.
            part: part of the training data; None for all.
            done: number of steps made before.
            generators: generators of batches and draws; None for new ones.
        """
        recipe = self.recipe
        return fit(
            lanes,
            generators or self.generators("training"),
            noise,
            self.train if part is None else part,
            [recipe.learning_rate for recipe in self.recipes],
            FitSettings(recipe.steps, recipe.batch_size, recipe.train_samples),
            lambda steps: self.on_step(done + steps),
            kl_weight=[recipe.kl_weight for recipe in self.recipes],
            prior_precision=self.prior_precision(lanes),
        )

    def lane_values(self, key: str) -> Tensor:
        """The value of a recipe key in each lane, `[R]`."""
        return torch.tensor([getattr(recipe, key) for recipe in self.recipes])

    def generators(self, purpose: str) -> list[torch.Generator]:
        """A generator for each lane, from its seed and the purpose."""
        return [torch.Generator().manual_seed(derived(seed, purpose)) for seed in self.seeds]

    def lanes(self, settings: Callable[[Recipe], dict[str, Any]]) -> Lanes:
        """Networks with one output, whose means start at He's from each lane's seed.

        Args:
            settings: function from a recipe to the settings of its `MLP`, without widths.
        """
        networks = []
        for recipe, seed in zip(self.recipes, self.seeds, strict=True):
            with seeded_rng(derived(seed, "start"), torch.device("cpu")):
                network = MLP(
                    self.x.shape[-1],
                    1,
                    hidden=self.hidden,
                    multi_head=False,
                    **settings(recipe),
                )
            networks.append(network)
        return Lanes(networks, 0)

    def point_lanes(self) -> Lanes:
        """Lanes of point estimates."""
        return self.lanes(lambda recipe: {"posterior": None})

    def prior_precision(self, lanes: Lanes) -> dict[str, Tensor]:
        """The prior precision of every point estimate, by name, `[R]`.

        With dropped inputs, q(w) has columns M_j z_j / keep with z_j ~ Bernoulli(keep). Its
        divergence from the prior is, up to constants (Gal and Ghahramani 2016, supplement, section
        4.2),

            ||M||^2 / (2 keep prior_scale^2) + ||b||^2 / (2 prior_scale^2)
        """
        precision = self.lane_values("prior_scale") ** -2
        precisions = dict.fromkeys(lanes.points, precision)
        layers = [f"body.{k}.weight" for k in range(len(self.hidden))] + ["head.output.weight"]
        # For each layer, the dropout before it in every lane.
        dropouts = zip(*(network.dropout for network in lanes.networks), strict=True)
        for name, before in zip(layers, dropouts, strict=False):
            precisions[name] = precision / torch.tensor([1 - dropout.p for dropout in before])
        return precisions

    def noise(self, points: Tensor | None = None) -> NoisePrecision:
        """The noise precision under its first prior, for points `[R]`; None for all."""
        prior = self.lane_values("noise_shape"), self.lane_values("noise_rate")
        points = self.train.points if points is None else points
        return NoisePrecision(points, prior, self.lane_values("initial_precision"))

    def repeated(self, times: int) -> Job:
        """Repeat every lane, with a different seed for each copy."""
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

    def draws(self, lanes: Lanes, samples: int) -> Tensor:
        """Outputs f(x; w) under draws of the weights that all rows share, `[T, R, n]`.

        The draws depend on a lane's seed alone, not on the draws of training.
        """
        functions = lanes.functions(self.x, samples, self.generators("prediction"))
        return torch.cat([*functions]).squeeze(-1)

    def train_and_mix(self, lanes: Lanes) -> Mixture:
        """Train, and mix over draws of the weights."""
        noise = self.noise()
        self.fit(lanes, noise)
        return self.mixed(lanes, noise)

    def mix_in_sequence(
        self, lanes: Lanes, parts: Sequence[LaneData]
    ) -> tuple[list[Mixture], list[int]]:
        """Train and mix part by part; each posterior is the prior of the next part.

        Returns:
            The predictive after each part, and the bytes that each lane carries.
        """
        generators = self.generators("training")
        starts = [contents(network.state_dict()) for network in lanes.networks]
        noise: NoisePrecision | None = None
        predictions: list[Mixture] = []
        for part in parts:
            if noise is None:
                noise = self.noise(part.points)
            else:
                lanes, noise = lanes.carried(), noise.carry(part.points)
            self.fit(lanes, noise, part, len(predictions) * self.recipe.steps, generators)
            predictions.append(self.mixed(lanes, noise))
        assert noise is not None
        states = zip(lanes.carried().networks, _noise_states(noise), starts, strict=True)
        return predictions, [
            carried_bytes([network.state_dict(), noise_state], start)
            for network, noise_state, start in states
        ]

    def mixed(self, lanes: Lanes, noise: NoisePrecision) -> Mixture:
        """The predictive of trained lanes, over draws of the weights."""
        return Mixture.under_noise(self.draws(lanes, self.recipe.eval_samples), noise)


def _noise_states(noise: NoisePrecision) -> list[dict[str, Tensor]]:
    """The state of the noise in every lane, as a likelihood keeps it."""
    state = noise.state_dict()
    return [
        {name: value[lane] for name, value in state.items()} for lane in range(len(noise.points))
    ]


def derived(seed: int, purpose: str) -> int:
    """A different seed for each purpose."""
    return seed_of(seed, *purpose.encode())
