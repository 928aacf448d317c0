"""Bayesian linear regression on the inputs: the posterior of `methods.bayes_linear`, by lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, ClassVar

import torch
from torch import Tensor

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.methods.bayes_linear import NormalGamma
from vcl_radial.tracks.regression.lane_method import LaneMethod
from vcl_radial.tracks.regression.learner import Job, Learner


class _Posterior:
    """The posterior of a lane, in the form of a `LaneRun`."""

    def __init__(self, prior: NormalGamma) -> None:
        self.posterior, self.done, self.left_out = prior, 0, False

    @property
    def states(self) -> list[dict[str, Any]]:
        """The posterior after the last slice."""
        return [asdict(self.posterior)]

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers from which the lane continues."""
        return {"states": self.states, "done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        (posterior,), self.done = state["states"], state["done"]
        self.posterior = NormalGamma(**posterior)


class Lanes(LaneMethod):
    """The posterior in closed form, lane by lane."""

    fixed: ClassVar = {"features": "inputs"}
    carried = True
    step_cost = 0.0

    def __init__(self, job: Job) -> None:
        Learner.__init__(self, job)
        weights = job.x.shape[-1] + 1
        self._posteriors = [
            _Posterior(NormalGamma.prior(weights, r.one_prior_scale, r.noise_shape, r.noise_rate))
            for r in job.recipes
        ]
        self._trained: list[int] = []

    def trainers(self, lane: int) -> list[Any]:
        """The posterior of a lane."""
        return [self._posteriors[lane]]

    def load_state_dict(self, lane: int, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned, or predict."""
        Learner.load_state_dict(self, lane, state)
        self._trained = [k for k, q in enumerate(self._posteriors) if q.done]

    def start(self, lane: int) -> Any:
        """The prior."""
        return self.states(lane)

    def steps(self) -> Iterator[list[int]]:
        """Update the posteriors slice by slice."""
        slices = self.job.slices
        while trained := [
            k for k, q in enumerate(self._posteriors) if q.done < len(slices) and not q.left_out
        ]:
            for k in trained:
                q, points = self._posteriors[k], slices[self._posteriors[k].done]
                count = int(points.points[k])
                x, y = _with_one(points.x[k, :count]), points.y[k, :count].double()[:, None]
                q.posterior = q.posterior.update(lambda x=x, y=y: [(x, y)])  # type: ignore[misc]
                q.done += 1
                self.job.on_steps(k, self.job.recipe.steps * q.done)
            self._trained = trained
            yield trained

    def predict(self) -> Mixture:
        """The Student-t predictive of each lane."""
        predicted = [
            self._posteriors[k].posterior.predictive(_with_one(self.job.x[k]))
            for k in self._trained
        ]
        mean, scale, degrees = (torch.stack(t) for t in zip(*predicted, strict=True))
        return Mixture(mean.squeeze(-1)[None], scale[None], degrees[None, :, None])


def _with_one(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[:, :1])], dim=1).double()
