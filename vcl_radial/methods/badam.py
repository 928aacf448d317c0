"""BAdam (Kessler et al. 2020), carried forward: a posterior from the second moment of Adam.

Adam minimises, with the previous posterior N(mean_p, 1 / precision_p) as the prior,

    f(w) = mean NLL + kl_weight/N sum precision_p (w - mean_p)^2 / 2

and its second moment v of the gradient of f (prior included) gives the posterior (Eq. 12 there)

    q(w) = N(w, 1 / precision),    precision = N sqrt(v)

RMSprop and AdaGrad have such an average too (their section 2): v is the mean of the squared
gradients, exponentially weighted in RMSprop as in Adam, and over all steps of the task in AdaGrad.

v is a variance of mini-batch gradients, so sqrt(v) falls as 1/sqrt(B) with the batch size B, and to
0 with full batches. It does not contain the curvature of the prior, whose gradient does not vary
between batches.
Their Eq. 10 adds the prior's precision to the posterior's, and so does `accumulate`:

    precision = precision_p + N sqrt(v)

Without it, the precision of each task replaces the last precision, as in Eq. 12, and a weight that
a task does not use is free after the task. If f never had a gradient in a weight (an input of a
dead unit), Eq. 12 gives the precision 0, and a draw has infinite noise. If predictions draw
weights, the precision is therefore at least that of the first prior: a weight without data keeps
this prior.

Their Appendix D.3 expands the likelihood alone, which is `prior_in_loss = false`: Adam minimises
the mean NLL, and the posterior is the product of the prior and N(w, 1 / (n sqrt(v))),

    precision = precision_p + n sqrt(v),    mean = (precision_p mean_p + n sqrt(v) w) / precision

with n = N / kl_weight, the effective number of points of the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adagrad, Adam, Optimizer, RMSprop

from vcl_radial.config.ranges import Positive, ShareBelowOne
from vcl_radial.errors import UserError
from vcl_radial.methods.base import MakeOptimizer, Method
from vcl_radial.methods.tasks import Task
from vcl_radial.nn import GaussianNetwork
from vcl_radial.optimizers import effective_sample_size


class BAdam(Method):
    """Train by Adam; its second moment gives the precision that is carried forward.

    The optimiser may also be RMSprop or AdaGrad.

    `kl_weight` is the strength of the carried prior, for which the paper tunes N (Appendix C).

    Args:
        network: network of point parameters, which are the means.
        prior_scale: the first prior is N(0, prior_scale^2).
        beta2: decay of the second moment of Adam or RMSprop.
        accumulate: whether the prior's precision is added to the posterior's. Without it, and with
            predictions that draw, the posterior's precision is at least that of the first prior.
        prior_in_loss: whether Adam's loss includes the prior; if not, the prior also enters the
            posterior's mean.
        predict_at_means: predict at the means, instead of with `eval_samples` draws of the weights.
        linearised: predict by the network linearised at the means, as in the paper's Fig. 1,
            instead of by the network itself under the draws.
        settings: settings of `Method`.

    Raises:
        UserError: the optimiser has no second moment, an option is out of its range, two options
            contradict each other, or the weights have a posterior already.
    """

    carries = "the mean and the precision of every weight, which become the prior"
    posteriors = frozenset({"none"})
    recipe_keys = frozenset({"eval_samples", "prior_scale"})

    def __init__(
        self,
        network: nn.Module,
        *,
        prior_scale: Positive = 1.0,
        beta2: ShareBelowOne = 0.999,
        accumulate: bool = True,
        prior_in_loss: bool = True,
        predict_at_means: bool = False,
        linearised: bool = False,
        **settings: Any,
    ) -> None:
        if not (prior_in_loss or accumulate):
            raise UserError(
                "options.accumulate = false leaves the prior out of the posterior, and "
                "options.prior_in_loss = false out of the loss: set one of them to true"
            )
        if linearised and predict_at_means:
            raise UserError(
                "options.linearised and options.predict_at_means are both true: at the means there "
                "is nothing to linearise; set one of them to false"
            )
        self.posterior = GaussianNetwork(
            network,
            prior_scale=prior_scale,
            noisy_training=False,
            noisy_prediction=not predict_at_means,
            linearised=linearised,
        )
        if predict_at_means:
            settings["eval_samples"] = 1
        super().__init__(self.posterior, **settings)
        self.beta2, self.accumulate, self.prior_in_loss = beta2, accumulate, prior_in_loss

    def make_optimizer(self, make: MakeOptimizer) -> Optimizer:
        """Make a new optimiser, without moments of earlier tasks, with this method's `beta2`."""
        self._adaptive = super().make_optimizer(make)
        for group in self._adaptive.param_groups:
            if "betas" in group:
                group["betas"] = (group["betas"][0], self.beta2)
            elif "alpha" in group:
                group["alpha"] = self.beta2
        return self._adaptive

    def check_optimizer(self, optimizer: Optimizer) -> None:
        """Raise `UserError` if the optimiser has no second moment, which is read."""
        if not isinstance(optimizer, Adam | RMSprop | Adagrad):
            raise UserError(
                'BAdam reads the second moment of Adam, RMSprop or AdaGrad: set optimizer = "adam"'
            )

    def penalty(self) -> Tensor | float:
        """1/2 sum precision_p (w - mean_p)^2 over the body and the heads in use, in nats."""
        if not self.prior_in_loss:
            return 0.0
        terms = [
            (q.prior_precision * (q.mean - q.prior_mean).square()).sum()
            for q in self.posterior.posteriors(self.heads).values()
        ]
        return torch.stack(terms).sum() / 2

    def posterior_outputs(self, x: Tensor, task: int | Tensor = 0, **draw_options: Any) -> Tensor:
        """The outputs at the means, `[1, B, C]`: `end_task` has not read the precision yet."""
        with self.using(self.posterior.network):
            return self.draws(x, task, samples=1)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        """Read the precision and make the posterior of the trained weights the prior."""
        for q in self.posterior.posteriors(task.heads).values():
            root = self._second_moment(self._adaptive.state[q.mean]).sqrt()
            points: float = task.points
            if not self.prior_in_loss:
                points = effective_sample_size(task.points, self.kl_weight)
            data = points * root
            q.precision = data + q.prior_precision if self.accumulate else data
            if not self.prior_in_loss:
                prior = q.prior_precision * q.prior_mean
                q.mean.copy_((data * q.mean + prior) / q.precision)
            elif not self.accumulate and self.posterior.noisy_prediction:
                # With infinite noise the draw of an untouched weight would be inf - inf.
                q.precision.clamp_(min=self.posterior.prior_precision)
            q.carry()

    def _second_moment(self, moments: Mapping[str, Any]) -> Tensor:
        """The mean of the squared gradients of a weight, v, by the optimiser's state of it."""
        steps = float(moments["step"])
        if "sum" in moments:  # AdaGrad
            mean: Tensor = moments["sum"] / steps
            return mean
        square = moments.get("square_avg", moments.get("exp_avg_sq"))
        square = moments.get("max_exp_avg_sq", square)
        corrected: Tensor = square / (1 - self.beta2**steps)
        return corrected
