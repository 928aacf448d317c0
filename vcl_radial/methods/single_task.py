"""A separate network for every task (an upper reference without transfer).

Every network starts from the same initial weights and learns only one task, so that neither the
number of the tasks nor their order matters; the likelihood is reset too. The method knows the task
of a test point even with one head for all tasks, where the other methods do not know it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Task
from vcl_radial.nn import MultiHead
from vcl_radial.nn.heads import adapt_heads


class SingleTask(Method):
    """loss = mean NLL of one task; the next task starts from the initial weights again."""

    carries = "nothing from task to task: each task has a network of its own"
    memoryless = True

    def __init__(self, network: nn.Module, **settings: Any) -> None:
        super().__init__(network, **settings)
        self._initial, self._unlearned = deepcopy(network), self.likelihood.state_dict()
        self.networks: dict[int, nn.Module] = {}
        """The network of each task that has been trained, by the task's number."""
        self.learned: dict[int, dict[str, Tensor]] = {}
        """The state of the likelihood after each task, such as the noise of the targets."""

    def begin_task(self, task: Task) -> None:
        """Reset all weights except frozen ones and the heads of other tasks."""
        self.likelihood.load_state_dict(self._unlearned)
        super().begin_task(task)
        adapt_heads(self._initial, task.heads)
        frozen = {n for n, p in self.network.named_parameters() if not p.requires_grad}
        other_heads = tuple(
            f"{name}.heads.{head}."
            for name, module in self.network.named_modules()
            if isinstance(module, MultiHead)
            for head in module.heads
            if int(head) not in task.heads
        )
        initial = self._initial.state_dict()
        with torch.no_grad():
            for name, value in self.network.state_dict().items():
                is_weight = name in initial and isinstance(value, Tensor)
                if is_weight and name not in frozen and not name.startswith(other_heads):
                    value.copy_(initial[name])

    def end_task(self, task: Task) -> None:
        """Store the task's network."""
        self.networks[task.number] = deepcopy(self.network).eval()
        self.learned[task.number] = self.likelihood.state_dict()

    def predict(
        self, x: Tensor, task: int | Tensor = 0, *, number: int | None = None, **settings: Any
    ) -> Any:
        """Predict like every method, with the likelihood's state after the task."""
        current = self.likelihood.state_dict()
        self.likelihood.load_state_dict(
            current if number is None else self.learned.get(number, current)
        )
        try:
            return super().predict(x, task, number=number, **settings)
        finally:
            self.likelihood.load_state_dict(current)

    def predictor(self, number: int | None) -> nn.Module:
        """The network of the task; for a future task, the initial network."""
        if number in self.networks:
            return self.networks[number]
        if number is not None and number != self.task.number:
            return self._initial.to(self.device).eval()
        return self.network

    def state_dict(self) -> dict[str, Any]:
        """The initial weights, and the weights of every task's network."""
        networks = {number: network.state_dict() for number, network in self.networks.items()}
        start = {"initial": self._initial.state_dict()}
        return super().state_dict() | start | {"networks": networks, "learned": dict(self.learned)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self._initial.load_state_dict(state["initial"])
        self.learned = state["learned"]
        self.networks = {number: deepcopy(self._initial).eval() for number in state["networks"]}
        for number, network in self.networks.items():
            # The initial network has the heads of later tasks too, which this one never had.
            stored = state["networks"][number]
            for name, module in network.named_modules():
                if isinstance(module, MultiHead):
                    for head in [*module.heads]:
                        if not any(key.startswith(f"{name}.heads.{head}.") for key in stored):
                            del module.heads[head]
            network.load_state_dict(stored)
            network.to(self.device)
