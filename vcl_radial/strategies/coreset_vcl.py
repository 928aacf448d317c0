"""Variational continual learning with a coreset (Nguyen et al. 2018, Algorithm 1).

A few points of each task, the coreset C_t, are set aside before the task is trained. Two posteriors
are kept apart: one sees all points but those, and is carried from task to task,

    q~_t = argmin_q  E_q[ -log p(D_t - C_t | w) ] + KL(q || q~_{t-1})

and one predicts. It starts from the first and sees the coresets of all tasks so far; nothing is
carried on from it, so that no point is counted twice:

    q_t = argmin_q  E_q[ -log p(C_1, ..., C_t | w) ] + KL(q || q~_t)

The authors' code for many heads makes a q_t of its own for each head, of that head's coreset alone;
here, as in the algorithm, one q_t serves all heads. What has no posterior (point heads) has no KL
that would hold it, and a few points would be fitted by maximum likelihood: it stays as training
left it. The authors' code starts the first task's posterior from maximum likelihood: `ml_epochs`
(theirs sees C_1 too, here D_1 - C_1 alone).
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import torch
from avalanche.models import MultiTaskModule
from avalanche.models.dynamic_optimizers import update_optimizer
from torch import Tensor
from torch.optim import Optimizer

from vcl_radial.data.streams import TensorBatches
from vcl_radial.data.streams.coreset import coreset
from vcl_radial.errors import UserError
from vcl_radial.nn import VariationalWeights, consolidate, kl_divergence
from vcl_radial.objectives import categorical_nll, per_point
from vcl_radial.predict import own_randomness
from vcl_radial.strategies.ml_init_vcl import MLInitVCL
from vcl_radial.strategies.task_model import TaskModel, log_predictive_of


class CoresetVCL(MLInitVCL):
    """VCL whose predictions come from a copy that was fine-tuned on points set aside.

    Args:
        coreset_size: points of each task that are set aside.
        selection: "random" or "k-centre"; see `vcl_radial.data.streams.coreset`.
        coreset_epochs: passes over the coresets before a prediction; `train_epochs` if not given.
        coreset_rate: the learning rates of these passes, as a multiple of those of training.
        ml_epochs: passes over the first task that train the means alone, before anything else.
        settings: those of `MLInitVCL`.

    Raises:
        UserError: the selection is not known, a task has no more than `coreset_size` points, or
            `coreset_epochs` is below 0 or `coreset_rate` not above 0.
    """

    def __init__(
        self,
        *,
        coreset_size: int = 40,
        selection: str = "random",
        coreset_epochs: int | None = None,
        coreset_rate: float = 1.0,
        ml_epochs: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(ml_epochs=ml_epochs, **settings)
        self.coreset_size, self.selection = coreset_size, selection
        self.coreset_epochs = self.train_epochs if coreset_epochs is None else coreset_epochs
        if self.coreset_epochs < 0:
            raise UserError(f"options.coreset_epochs = {coreset_epochs} must be at least 0")
        if not 0 < coreset_rate < math.inf:
            raise UserError(f"options.coreset_rate = {coreset_rate} must be above 0 and finite")
        self.coreset_rate = coreset_rate
        self.coreset: tuple[Tensor, ...] = ()
        """Inputs, labels and task labels of the points set aside; empty before the first task."""
        self.coreset_seed = 0
        """Of the fine-tuning, so that the predictions are a function of the state."""
        self._prediction: MultiTaskModule | None = None

    def train_dataset_adaptation(self, **kwargs: Any) -> None:
        """Set the task's coreset aside: what is left is trained on."""
        super().train_dataset_adaptation(**kwargs)
        self.make_train_dataloader(shuffle=False, drop_last=False)
        rows = [torch.cat(column).to(self.device) for column in zip(*self.dataloader, strict=True)]
        chosen = coreset(self.selection, rows[0], self.coreset_size)
        left = torch.ones(len(rows[0]), dtype=torch.bool)
        left[chosen.cpu()] = False
        self.adapted_dataset = self.adapted_dataset.subset(left.nonzero().flatten().tolist())
        new = [column[chosen] for column in rows]
        old = self.coreset or [column[:0] for column in new]
        self.coreset = tuple(torch.cat(both) for both in zip(old, new, strict=True))
        self.coreset_seed = int(torch.randint(2**31, ()))

    def consolidate(self, experience: Any) -> None:
        """Carry on the posterior that has not seen the coresets, and make the one that has."""
        super().consolidate(experience)
        self._prediction = self._fine_tuned()

    def forward(self) -> Tensor:
        """As every strategy in training; in evaluation the prediction of the fine-tuned copy."""
        if self.is_training or not self.coreset:
            return super().forward()
        if self._prediction is None:  # a state was loaded, or training has gone on
            with torch.enable_grad():
                self._prediction = self._fine_tuned()
        return log_predictive_of(self._prediction, self.mb_x, self.mb_task_id)

    def state_dict(self) -> dict[str, Any]:
        """The posterior that is carried on, and the coresets; the copy follows from them."""
        carried = {"coreset": self.coreset, "coreset_seed": self.coreset_seed}
        return super().state_dict() | carried

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self.coreset = tuple(column.to(self.device) for column in state["coreset"])
        self.coreset_seed = state["coreset_seed"]
        self._prediction = None

    def _before_training_iteration(self, **kwargs: Any) -> None:
        self._prediction = None
        super()._before_training_iteration(**kwargs)

    def _fine_tuned(self) -> MultiTaskModule:
        """A copy of the model, trained on the coresets with the model's posterior as its prior."""
        model = deepcopy(self.model).train()
        network = model.network if isinstance(model, TaskModel) else model
        layers = [m for m in model.modules() if isinstance(m, VariationalWeights)]
        for layer in layers:
            layer.sampler = None  # in the middle of a task, one that draws for its training
        held = {id(parameter) for layer in layers for parameter in layer.parameters()}
        for parameter in model.parameters():
            if id(parameter) not in held:
                parameter.requires_grad_(False)  # no optimiser moves what has no gradient
        x, y, tasks = self.coreset
        heads = torch.unique(tasks).tolist()
        consolidate(network, heads)
        optimizer = self._optimizer_for(model)
        with own_randomness(self.coreset_seed, self.device):
            for epoch in range(self.coreset_epochs):
                self.set_rates(optimizer, epoch / self.coreset_epochs)
                for inputs, labels, task in TensorBatches(x, y, tasks, self.train_mb_size, True):
                    draws = [model(inputs, task) for _ in range(self.train_samples)]
                    kl = kl_divergence(network, heads)
                    nll = categorical_nll(torch.stack(draws), labels)
                    optimizer.zero_grad()
                    torch.autograd.backward(nll + per_point(kl, len(x), self.penalty_weight))
                    optimizer.step()
        return model.eval()

    def _optimizer_for(self, model: MultiTaskModule) -> Optimizer:
        """As in training, afresh, over a copy of the model."""
        optimizer = self._same_optimizer_for(model)
        for group in optimizer.param_groups:
            group["lr"] = self.coreset_rate * group.pop("task_lr", group["lr"])
        return optimizer

    def _same_optimizer_for(self, model: MultiTaskModule) -> Optimizer:
        if self._make_optimizer is not None:
            return self._make_optimizer(model)
        pairs = zip(self.model.parameters(), model.parameters(), strict=True)
        # With its groups, over the copy's parameters ...
        optimizer = deepcopy(self.optimizer, {id(own): copied for own, copied in pairs})
        # ... and heads that only a loaded state has brought; nothing is left of its steps.
        update_optimizer(optimizer, dict(model.named_parameters()), reset_state=True)
        return optimizer
