"""Variational continual learning with a coreset (Nguyen et al. 2018, Algorithm 1).

A few points of each task, the coreset C_t, are set aside before the task is trained. There are two
posteriors: one learns from all other points, and is carried from task to task,

    q~_t = argmin_q  E_q[ -log p(D_t - C_t | w) ] + KL(q || q~_{t-1})

and the other predicts. It starts from the first and learns from the coresets of all tasks so far;
it is not carried, so that no point counts twice:

    q_t = argmin_q  E_q[ -log p(C_1, ..., C_t | w) ] + KL(q || q~_t)

For many heads, the authors' code makes one q_t per head, from the coreset of this head alone. Here,
as in the algorithm, one q_t predicts for all heads. The fine-tuning does not change weights without
a posterior (point heads): without a KL they would fit a few points by maximum likelihood. The
authors' code starts the first task's posterior from maximum likelihood, as `ml_epochs` does (their
start learns from C_1 too, here it learns from D_1 - C_1 alone).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config.ranges import Count, CountOrZero, Positive
from vcl_radial.data.streams import TensorBatches
from vcl_radial.data.streams.coreset import coreset
from vcl_radial.likelihoods.objectives import per_point
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import MakeOptimizer
from vcl_radial.methods.ml_init_vcl import MLInitVCL
from vcl_radial.methods.tasks import Batch, Task, check_inputs
from vcl_radial.nn import VariationalWeights, consolidate, kl_divergence
from vcl_radial.optimizers.schedules import set_rates


class CoresetVCL(MLInitVCL):
    """VCL whose predictions come from a copy that is fine-tuned on the coresets.

    Args:
        coreset_size: number of points of each task that are set aside.
        selection: "random" or "k-centre"; see `vcl_radial.data.streams.coreset`.
        coreset_epochs: passes over the coresets before a prediction; by default the number of
            epochs of a task.
        coreset_rate: learning rates of these passes, as a multiple of the training rates.
        ml_epochs: passes over the first task that train the means alone, before its normal epochs.
        settings: settings of `MLInitVCL`.

    Raises:
        UserError: the selection is not known, a task has no more than `coreset_size` points, or
            `coreset_epochs` is below 0 or `coreset_rate` not above 0.
    """

    carries = "the posterior, which becomes the prior, and `coreset_size` points of each task"

    def __init__(
        self,
        network: nn.Module,
        *,
        coreset_size: Count = 40,
        selection: Literal["random", "k-centre"] = "random",
        coreset_epochs: CountOrZero | None = None,
        coreset_rate: Positive = 1.0,
        ml_epochs: CountOrZero = 0,
        **settings: Any,
    ) -> None:
        super().__init__(network, ml_epochs=ml_epochs, **settings)
        self.coreset_size, self.selection = coreset_size, selection
        self.coreset_epochs, self.coreset_rate = coreset_epochs, coreset_rate
        self.coreset: tuple[Tensor, ...] = ()
        """Inputs, targets and task labels of the points set aside; empty before the first task."""
        self.coreset_seed = 0
        """Seed of the fine-tuning, so that the predictions are a function of the state."""
        self._prediction: nn.Module | None = None
        self._make: MakeOptimizer | None = None

    def select(self, points: Callable[[], Batch]) -> Tensor | None:
        """Store the task's coreset; training uses the other points."""
        batch = points()
        columns = [batch.x, batch.y, batch.labels]
        chosen = coreset(self.selection, batch.x, self.coreset_size)
        trained = torch.ones(len(batch.x), dtype=torch.bool)
        trained[chosen.cpu()] = False
        new = [column[chosen] for column in columns]
        old = self.coreset or [column[:0] for column in new]
        self.coreset = tuple(torch.cat(pair) for pair in zip(old, new, strict=True))
        self.coreset_seed = int(torch.randint(2**31, ()))
        return trained.nonzero().flatten()

    def make_optimizer(self, make: MakeOptimizer) -> Optimizer:
        """The optimiser of a task; the fine-tuning makes another one like it."""
        self._make = make
        return super().make_optimizer(make)

    def extend(self, batch: Batch) -> Batch:
        """The batch, unchanged; its step makes the fine-tuned copy out of date."""
        self._prediction = None
        return super().extend(batch)

    def end_task(self, task: Task) -> None:
        """Carry the posterior without the coresets forward, and make the one for predictions."""
        super().end_task(task)
        self._prediction = self._fine_tuned()

    def predictor(self, number: int | None) -> nn.Module:
        """The copy that was fine-tuned on the coresets."""
        if not self.coreset:
            return self.network
        if self._prediction is None:  # a training step has made it out of date
            with torch.enable_grad():
                self._prediction = self._fine_tuned()
        return self._prediction

    def state_dict(self) -> dict[str, Any]:
        """The carried posterior, the coresets, and the copy that was fine-tuned on them."""
        copy = None if self._prediction is None else self._prediction.state_dict()
        carried = {"coreset": self.coreset, "coreset_seed": self.coreset_seed}
        return super().state_dict() | carried | {"prediction": copy}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.coreset = tuple(column.to(self.device) for column in state["coreset"])
        self.coreset_seed = state["coreset_seed"]
        self._prediction = None
        if state["prediction"] is not None:
            self._prediction = deepcopy(self.network).eval()
            self._prediction.load_state_dict(state["prediction"])

    def _fine_tuned(self) -> nn.Module:
        """A copy of the network, trained on the coresets with its posterior as the prior."""
        network = deepcopy(self.network).train()
        layers = [m for m in network.modules() if isinstance(m, VariationalWeights)]
        variational = {id(parameter) for layer in layers for parameter in layer.parameters()}
        for parameter in network.parameters():
            if id(parameter) not in variational:
                parameter.requires_grad_(False)  # no optimiser moves what has no gradient
        if not any(parameter.requires_grad for parameter in network.parameters()):
            return network.eval()
        x, y, tasks = self.coreset
        check_inputs(x, "the coreset")
        heads = torch.unique(tasks).tolist()
        consolidate(network, heads)
        optimizer, task = self._optimizer_for(network), self.task
        epochs = task.epochs if self.coreset_epochs is None else self.coreset_epochs
        with seeded_rng(self.coreset_seed, self.device), self.using(network):
            for epoch in range(epochs):
                set_rates(optimizer, task.schedule, epoch / epochs)
                for row in TensorBatches(x, y, tasks, task.batch_size, True):
                    batch = Batch(*row)
                    draws = [self.output(batch.x, batch.task) for _ in range(self.train_samples)]
                    self.likelihood.check(batch.y, draws[0].shape[-1])
                    kl = kl_divergence(network, heads)
                    nll = self.likelihood.nll(torch.stack(draws), batch.y)
                    optimizer.zero_grad()
                    torch.autograd.backward(nll + per_point(kl, len(x), self.kl_weight))
                    optimizer.step()
        return network.eval()

    def _optimizer_for(self, network: nn.Module) -> Optimizer:
        """A new optimiser like that of training, over a copy of the network."""
        assert self._make is not None
        optimizer = self._make(network)
        for group in optimizer.param_groups:
            group["lr"] = self.coreset_rate * group.pop("task_lr", group["lr"])
        return optimizer
