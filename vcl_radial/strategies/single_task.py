"""Each task alone: a network of its own for every task (an upper reference without transfer).

Every network starts from the same initial weights and sees its own task only, so that neither the
number of the tasks nor their order matters. It is told which task a test point comes from, with
one head for all tasks too, where the other methods are not.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from avalanche.models import MultiTaskModule
from torch import Tensor

from vcl_radial.strategies.base import ContinualStrategy
from vcl_radial.strategies.task_model import log_predictive_of


class SingleTask(ContinualStrategy):
    """loss = mean NLL of one task; the next task starts afresh, and the network is kept aside."""

    memoryless = True

    model: MultiTaskModule

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._initial = deepcopy(self.model).to(self.device)
        self.models: dict[int, MultiTaskModule] = {}
        """The model of each task that has been trained, by the number of its experience."""

    def forward(self) -> Tensor:
        """As every strategy in training; in evaluation the prediction of the task's own model."""
        if self.is_training:
            return super().forward()
        model = self.models.get(self.experience.current_experience, self._initial)
        return log_predictive_of(model.eval(), self.mb_x, self.mb_task_id)

    def state_dict(self) -> dict[str, Any]:
        """The initial weights, and those of every task's model."""
        models = {number: model.state_dict() for number, model in self.models.items()}
        return super().state_dict() | {"initial": self._initial.state_dict(), "models": models}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self._initial.load_state_dict(state["initial"])
        self.models = {number: deepcopy(self._initial) for number in state["models"]}
        for number, model in self.models.items():
            model.load_state_dict(state["models"][number])

    def _before_training_exp(self, **kwargs: Any) -> None:
        self.model = deepcopy(self._initial).train()
        self.models[self.experience.current_experience] = self.model
        super()._before_training_exp(**kwargs)
