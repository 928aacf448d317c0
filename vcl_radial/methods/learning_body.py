"""An exact head on a body that keeps learning: methods between a frozen body and a free one.

When the features phi_t of a body change, the statistics of an exact head become invalid, because
they are sums over earlier features. Two things keep them valid. First, a `learner` holds the body
near its earlier weights. It can be any method that learns task by task and carries a posterior, or
an approximation of one, over the body and one output layer:

    loss = mean NLL + kl_weight * (the learner's penalty) / N

with features at the posterior's mean. Second, the carried posterior of the heads moves with the
features: at the end of a task,

    phi_t ~ W phi,   W = I + sum (phi_t - phi) phi' (sum phi phi' + e I)^-1,   phi = phi_{t-1},

with sums over its points, so that directions outside the span of their features do not change. The
posterior of `vcl_radial.methods.bayes_linear`, with precision P and mean m, becomes the posterior
over the same functions,

    P <- W P W',    m <- (W P W')^-1 W P m

which keeps all predictions if the change of the features is linear and invertible. W is estimated
on inputs of the current task alone: if the inputs of old tasks differ, as with permuted pixels, W
may be wrong for them, and it is better not to move the posterior.

Gradient steps train the body and one output layer with the likelihood of the current task: a
softmax, or labels with Gaussian noise (`vcl_radial.likelihoods.OneHot`). The exact heads make the
predictions. They have Gaussian noise too, and learn the task's points at the end of the task.

| learner                     | the body                                                        |
| --------------------------- | --------------------------------------------------------------- |
| `none`                      | frozen after a task: `bayes_linear` with `"first-task-body"`    |
| `none`, with `from_start`   | untrained: the same with `features = "body"`                    |
| `l2`                        | pulled to its last weights, from the first task on or, with     |
|                             | `from_start`, from the network's initial weights                |
| `vcl`                       | carried as the recipe's `posterior`: radial, Gaussian, low      |
|                             | rank; with `from_start` the first prior is its initial value    |
| `laplace_kronecker`, `ewc`  | and others: see their files                                     |
| `naive`                     | free                                                            |

The method is new in this suite; it reproduces no published row.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.errors import UserError
from vcl_radial.features import FirstTaskBody
from vcl_radial.features.body import at_mean
from vcl_radial.likelihoods import Likelihood, OneHot
from vcl_radial.methods.base import Method
from vcl_radial.methods.bayes_linear import BayesLinear, ConjugateHead, NormalGamma
from vcl_radial.methods.fixed_features import FixedFeatureMethod, gram
from vcl_radial.methods.l2 import L2
from vcl_radial.methods.registry import find_method, names
from vcl_radial.methods.tasks import Task
from vcl_radial.nn import consolidate

RIDGE = 1e-6
"""The e of W, as a fraction of the mean of the diagonal."""

_FLOOR = 1e-10
"""Ridge of a moved precision, in the same units; W may have made the precision singular."""


class LearningBody(BayesLinear):
    """Carry an exact posterior of the heads forward while their body keeps learning.

    Args:
        network: network with linear heads, of point estimates unless the learner has a posterior.
        learner: name of the method that trains the body with `kl_weight`; if it is "none" or None,
            the body does not change after the first task.
        from_start: whether the penalty also holds the first task near the network's initial
            weights: the first prior of "vcl" is then its initial posterior.
        propagate: whether the carried posterior moves with the features.
        likelihood: likelihood of the learner; the heads always have Gaussian noise on classes.
        settings: settings of `BayesLinear` except its features.

    Raises:
        UserError: see `BayesLinear` and the learner; also for a learner that does not train a
            network task by task, or that has no penalty on the first task.
    """

    carries = "the posterior of the heads, and what the learner carries for the body"
    likelihoods = frozenset({"gaussian", "categorical", "one-hot"})
    posteriors = frozenset()
    fixed_options = frozenset({"features"})
    trains_old_heads = True

    def __init__(
        self,
        network: nn.Module,
        *,
        learner: str | None = None,
        from_start: bool = False,
        propagate: bool = False,
        likelihood: Likelihood | None = None,
        **settings: Any,
    ) -> None:
        learner = None if learner == "none" else learner
        if learner is not None and learner not in names():
            near = get_close_matches(learner, names(), 1, cutoff=0.0)[0]
            raise UserError(f"options.learner = {learner!r} is not known; the nearest is {near!r}")
        if from_start and learner not in (None, "l2", "vcl"):
            raise UserError(
                f"options.from_start: learner = {learner!r} cannot hold the first task: set it "
                'to false, or take learner = "l2" or "vcl"'
            )
        self.learner, self.from_start = learner, from_start
        if learner is None:
            self.posteriors = frozenset({"none"})  # type: ignore[misc]
        self.likelihood_of_learner = likelihood
        heads_likelihood = None if isinstance(likelihood, OneHot) else likelihood
        super().__init__(
            network, features="first-task-body", likelihood=heads_likelihood, **settings
        )
        self.anchor = self._copied_body() if propagate and self.learner is not None else None
        """The body at the end of the last task, whose features the carried posterior refers to."""
        self.learned = False
        """Whether a task has ended."""
        # An L2 learner carries the body's weights alone, and every task has a head of its own.
        self.memoryless = self.with_task and learner in (None, "l2")  # type: ignore[misc]

    def make_trainer(self, network: nn.Module) -> Method:
        """The learner."""
        likelihood = self.likelihood_of_learner
        if self.learner is None:
            return Method(network, likelihood=likelihood)
        if self.learner == "l2":
            return L2(network, heads=False, from_start=self.from_start, likelihood=likelihood)
        cls = find_method(self.learner)
        if _trains_one_network(cls):
            trainer: Method = cls(network, likelihood=likelihood)
            if trainer.network is network:
                return trainer
        raise UserError(
            f"options.learner = {self.learner!r} does not train one network task by task: take "
            "'vcl', 'laplace_kronecker', 'ewc' or another that does"
        )

    def draws(self, x: Tensor, task: int | Tensor = 0, **draw_options: Any) -> Tensor:
        """Outputs of the heads; while the body is trained, logits of the learner's likelihood."""
        outputs = super().draws(x, task, **draw_options)
        return outputs if self.trainer is None else self.trainer.likelihood.logits(outputs)

    @property
    def body(self) -> FirstTaskBody:
        """The features, which a task trains unless they are fixed."""
        features = self.network.features
        assert isinstance(features, FirstTaskBody)
        return features

    def begin_task(self, task: Task) -> None:
        """Let the body learn the task, unless it is fixed."""
        if self.anchor is not None:
            self.anchor.to(self.device)
        if self.learner is not None:
            self.body.release()
        elif self.from_start:
            self.body.hold()
        if self.from_start and self.learner == "vcl" and not self.learned:
            consolidate(self.body.body, [])
        super().begin_task(task)

    def learn_heads(self, task: Task) -> None:
        """Move the posterior of the heads to the current features, and learn the task's points."""
        if self.learned and self.anchor is not None:
            change = self._change(self.anchor)
            heads = [m for m in self.network.modules() if isinstance(m, ConjugateHead)]
            for head in heads:
                if not (head.frozen or self.is_first(head.posterior)):
                    head.take(moved(head.posterior, change))
        super().learn_heads(task)
        if self.anchor is not None:
            self.anchor = self._copied_body()
        self.learned = True

    def state_dict(self) -> dict[str, Any]:
        """The network, the anchor of the body, and whether a task has ended."""
        state: dict[str, Any] = {"learned": self.learned}
        if self.anchor is not None:
            state["anchor"] = self.anchor.state_dict()
        return super().state_dict() | state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        if self.anchor is not None:
            self.anchor.load_state_dict(state["anchor"])
        self.learned = state["learned"]

    def _copied_body(self) -> nn.Module:
        return copy.deepcopy(self.body.body).requires_grad_(False).eval()

    def _change(self, anchor: nn.Module) -> Tensor:
        """W from an earlier body to the current one on the task's points, `[D, D]` float64."""
        size = self.body.size + 1
        squared = torch.zeros(size, size, dtype=torch.float64, device=self.device)
        cross = torch.zeros_like(squared)
        for (x, *_), _ in self.points():
            new, old = self.network.phi(x).double(), at_mean(anchor, x).double()
            old = torch.cat([old, torch.ones_like(old[:, :1])], dim=1)
            squared += gram(old)
            cross += old.T @ (new - old)
        return linear_change(squared, cross)


def _trains_one_network(cls: type[Any]) -> bool:
    """Whether a method learns task by task, and predicts with the weights that its steps train."""
    return (
        issubclass(cls, Method)
        and not issubclass(cls, FixedFeatureMethod)
        and not cls.needs_whole_stream
        and not hasattr(cls, "frozen")  # a release of the body would unfreeze it
        and (cls.select, cls.predictor) == (Method.select, Method.predictor)
    )


def linear_change(squared: Tensor, cross: Tensor) -> Tensor:
    """W `[D, D]` with new features ~ W old features, by ridge regression around the identity.

    Args:
        squared: sum phi phi' of the old features, `[D, D]` float64.
        cross: sum phi (phi_new - phi)', `[D, D]`.
    """
    ridge = RIDGE * squared.diagonal().mean()
    root = torch.linalg.cholesky(squared + ridge * torch.eye(len(squared)).to(squared))
    change: Tensor = torch.eye(len(squared)).to(squared) + torch.cholesky_solve(cross, root).T
    return change


def moved(posterior: NormalGamma, change: Tensor) -> NormalGamma:
    """The posterior of the same functions on features that a matrix W `[D, D]` has changed."""
    precision = gram((change @ posterior.root).T)
    precision.diagonal().add_(_FLOOR * precision.diagonal().mean())
    root = torch.linalg.cholesky(precision)
    weighted = change @ (posterior.precision @ posterior.mean)
    mean = torch.cholesky_solve(weighted, root).contiguous()
    return replace(posterior, mean=mean, precision=precision)
