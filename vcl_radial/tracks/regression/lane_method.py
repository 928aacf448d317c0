"""Methods whose splits of a table train as lanes of one program."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.noise_precision import NoisePrecision
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn.lanes import Lanes, point_estimates
from vcl_radial.nn.mlp import MLP
from vcl_radial.optimizers.schedules import linear_tail
from vcl_radial.tracks.regression.learner import Job, Learner
from vcl_radial.tracks.regression.seeds import derived
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.training.lanes import LaneRun, LaneTrainer


class LaneMethod(Learner):
    """A method in lanes: networks with one output, which train on the evidence lower bound.

    A subclass is in the file of `tracks/regression/lanes/` that has the method's name. By default
    it trains point estimates, and mixes over draws of the weights.

    Args:
        job: the runs, all of one shape.
    """

    posteriors: ClassVar[Collection[str]] = ("none",)
    """The posteriors of the weights that it supports."""
    options: ClassVar[Collection[str]] = ()
    """The options of the method that it supports."""
    fixed: ClassVar[Mapping[str, Any]] = {}
    """Options of the method with their only supported value, which is this track's default."""
    alike: ClassVar[Collection[str]] = ()
    """Keys of the recipe and options that lanes of one program share, besides the shared keys of
    `vcl_radial.tracks.regression.settings`."""
    carried: ClassVar[bool] = False
    """Whether the posterior can be carried to the next slice."""
    has_kl: ClassVar[bool] = False
    """Whether the objective has a KL, which `kl_weight` weighs."""
    step_cost: ClassVar[float] = 1.0
    """Fixed cost of a step relative to the usual one; 0 without steps."""

    @classmethod
    def serves(cls, posterior: str, options: Mapping[str, Any]) -> bool:
        """Whether a run with this posterior and these options can be a lane."""
        fixed = {k: v for k, v in options.items() if k not in cls.options}
        return posterior in cls.posteriors and {**cls.fixed, **fixed} == {**cls.fixed}

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.seeds: list[int] = []
        """The seed of each network."""
        self.runs: list[int] = []
        """The lane of the job to which each network belongs."""
        lanes = []
        for run, recipe in enumerate(job.recipes):
            for seed in self.network_seeds(recipe, job.seeds[run]):
                lanes.append(self._lane(recipe, seed))
                self.seeds.append(seed)
                self.runs.append(run)
        self.slices = [part.of_lanes(self.runs) for part in job.slices]
        self.trainer = LaneTrainer(
            lanes,
            batch_size=job.recipe.batch_size,
            steps=job.recipe.steps,
            kl_schedule=job.recipe.kl_schedule,
            on_progress=lambda k, task, done: job.on_steps(
                self.runs[k], task * job.recipe.steps + done
            ),
        )

    def network_seeds(self, recipe: Recipe, seed: int) -> list[int]:
        """The seeds of a run's networks, from its own."""
        return [seed]

    def network(self, recipe: Recipe) -> nn.Module:
        """The network of a run, whose means start at He's."""
        return self.mlp(posterior=None)

    def mlp(self, **settings: Any) -> MLP:
        """A network with the job's inputs and widths."""
        inputs = self.job.x.shape[-1]
        return MLP(inputs, 1, hidden=self.job.hidden, multi_head=False, **settings)

    def _lane(self, recipe: Recipe, seed: int) -> LaneRun:
        with seeded_rng(derived(seed, "start"), torch.device("cpu")):
            network = self.network(recipe)
        cls: type[Method] = VCL if self.carried else Naive
        method = cls(
            network,
            likelihood=Gaussian(recipe.noise_shape, recipe.noise_rate, recipe.initial_precision),
            kl_weight=recipe.kl_weight,
            train_samples=recipe.train_samples,
        )
        training = derived(seed, "training")
        assert isinstance(recipe.prior_scale, float)  # others train one by one
        return LaneRun(
            method,
            lambda task: None if task else training,
            recipe.learning_rate,
            schedule=linear_tail,
            prior_precision=prior_precision(network, recipe.prior_scale),
        )

    def trainers(self, lane: int) -> list[LaneRun]:
        """The training of each network of a lane."""
        return [self.trainer.lanes[k] for k, run in enumerate(self.runs) if run == lane]

    def steps(self) -> Iterator[list[int]]:
        """Train the remaining slices."""
        for trained in self.trainer.steps(self.slices):
            yield list(dict.fromkeys(self.runs[k] for k in trained))

    def load_state_dict(self, lane: int, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned, or predict."""
        super().load_state_dict(lane, state)
        self.trainer.trained = [k for k, run in enumerate(self.trainer.lanes) if run.done]

    @property
    def lanes(self) -> Lanes:
        """The trained networks."""
        if hasattr(self.trainer, "step"):
            return self.trainer.step.lanes
        return Lanes([self.trainer.lanes[k].method.network for k in self.trainer.trained], 0)

    @property
    def x(self) -> Tensor:
        """The inputs that each trained network predicts, `[R, n, d]`."""
        return self.job.x[[self.runs[k] for k in self.trainer.trained]]

    @property
    def noise(self) -> NoisePrecision:
        """The noise precision of each trained network, `[R]`."""
        return self.trainer.noise

    def draws(self, samples: int) -> Tensor:
        """Outputs f(x; w) under draws of the weights that all rows share, `[T, R, n]`.

        The draws depend on a lane's seed alone, not on the draws of training.
        """
        generators = [
            torch.Generator().manual_seed(derived(self.seeds[k], "prediction"))
            for k in self.trainer.trained
        ]
        return torch.cat([*self.lanes.functions(self.x, samples, generators)]).squeeze(-1)

    def predict(self) -> Mixture:
        """Mix over draws of the weights."""
        return Mixture.under_noise(self.draws(self.job.recipe.eval_samples), self.noise)


def prior_precision(network: nn.Module, prior_scale: float) -> dict[str, Tensor]:
    """The prior precision of every point estimate of a network, by name.

    With dropped inputs, q(w) has columns M_j z_j / keep with z_j ~ Bernoulli(keep). Its divergence
    from the prior is, up to constants (Gal and Ghahramani 2016, supplement, section 4.2),

        ||M||^2 / (2 keep prior_scale^2) + ||b||^2 / (2 prior_scale^2)
    """
    precision = torch.tensor(prior_scale) ** -2
    precisions = dict.fromkeys(point_estimates(network, 0), precision)
    if isinstance(network, MLP) and network.dropout:
        layers = [f"body.{k}.weight" for k in range(len(network.body))] + ["head.output.weight"]
        rates: list[Any] = [dropout.p for dropout in network.dropout]
        for name, rate in zip(layers, rates, strict=True):
            precisions[name] = precision / torch.tensor(1 - rate)
    return precisions
