"""What a method is given, and what several methods do with it."""

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
        lanes: Lanes,
        noise: NoisePrecision,
        part: LaneData | None = None,
        done: int = 0,
        generators: Sequence[torch.Generator] | None = None,
    ) -> LaneStep:
        """Train networks of the lanes.

        Args:
            lanes: changed in place.
            noise: changed in place.
            part: of the training data; None for all of them.
            done: steps that were made before.
            generators: that batches and draws come from; None for new ones.
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

    def of_lanes(self, key: str) -> Tensor:
        """A number of each lane's recipe, `[R]`."""
        return torch.tensor([getattr(recipe, key) for recipe in self.recipes])

    def generators(self, purpose: str) -> list[torch.Generator]:
        """A generator for each lane, from its seed and what it is for."""
        return [torch.Generator().manual_seed(derived(seed, purpose)) for seed in self.seeds]

    def lanes(self, settings: Callable[[Recipe], dict[str, Any]]) -> Lanes:
        """Networks with one output, whose means start at He's from each lane's own seed.

        Args:
            settings: those of a lane's `MLP`, beside its widths.
        """
        networks = []
        for recipe, seed in zip(self.recipes, self.seeds, strict=True):
            with seeded_rng(derived(seed, "start"), torch.device("cpu")):
                made = MLP(
                    self.x.shape[-1],
                    1,
                    hidden=self.hidden,
                    multi_head=False,
                    **settings(recipe),
                )
            networks.append(made)
        return Lanes(networks, 0)

    def point_lanes(self) -> Lanes:
        """Point estimates."""
        return self.lanes(lambda recipe: {"posterior": None})

    def prior_precision(self, lanes: Lanes) -> dict[str, Tensor]:
        """Of every point estimate, by name, `[R]`.

        With inputs that are dropped q(w) has columns M_j z_j / keep with z_j ~ Bernoulli(keep). Its
        divergence from the prior is, up to constants (Gal and Ghahramani 2016, supplement, section
        4.2),

            ||M||^2 / (2 keep prior_scale^2) + ||b||^2 / (2 prior_scale^2)
        """
        precision = self.of_lanes("prior_scale") ** -2
        of_points = dict.fromkeys(lanes.points, precision)
        layers = [f"body.{k}.weight" for k in range(len(self.hidden))] + ["head.output.weight"]
        # Of each layer, the dropout before it in every lane.
        dropouts = zip(*(network.dropout for network in lanes.networks), strict=True)
        for name, before in zip(layers, dropouts, strict=False):
            of_points[name] = precision / torch.tensor([1 - dropout.p for dropout in before])
        return of_points

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

    def draws(self, lanes: Lanes, samples: int) -> Tensor:
        """f(x; w) under draws of the weights that all rows share, `[T, R, n]`.

        They depend on a lane's seed alone, not on what training has drawn.
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
        """The same after each part of the data, each posterior the prior of the next.

        Behind it stand the bytes that every lane carries, as those of a run by itself.
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
        states = zip(lanes.carried().networks, _of_lanes(noise), starts, strict=True)
        return predictions, [
            carried_bytes([network.state_dict(), of_noise], start)
            for network, of_noise, start in states
        ]

    def mixed(self, lanes: Lanes, noise: NoisePrecision) -> Mixture:
        """The predictive of trained lanes, over draws of the weights."""
        return Mixture.under_noise(self.draws(lanes, self.recipe.eval_samples), noise)


def _of_lanes(noise: NoisePrecision) -> list[dict[str, Tensor]]:
    """The state of the noise in every lane, as a likelihood keeps it."""
    of_all = noise.state_dict()
    return [
        {name: value[lane] for name, value in of_all.items()} for lane in range(len(noise.points))
    ]


def derived(seed: int, purpose: str) -> int:
    """A seed of its own for each purpose."""
    return seed_of(seed, *purpose.encode())
