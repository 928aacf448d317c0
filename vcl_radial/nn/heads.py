"""Output heads: one for every task, or one for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.nn.linear import BayesianLinear, PointLinear
from vcl_radial.nn.weights import LayerSettings


class MultiHead(nn.Module):
    """One output layer per task, which is made when the task first appears.

    A head that has not been trained keeps the *initial* prior until its task begins, and the
    posterior of a trained head does not change, because the functions of `vcl_radial.nn.carry` read
    and consolidate only the heads of the tasks in their arguments.

    Args:
        make_head: makes one output layer. It runs with a seed for the head, so that the initial
            weights depend neither on the time when the head is made nor on earlier draws.
    """

    seed: Tensor
    like: Tensor
    """A tensor with the device and dtype of future heads; it moves with the network."""

    def __init__(self, make_head: Callable[[], nn.Module]) -> None:
        super().__init__()
        self._make_head = make_head
        self.register_buffer("seed", torch.randint(2**31, ()))
        self.register_buffer("like", torch.zeros(0), persistent=False)
        self.heads = nn.ModuleDict()

    def adapt(self, tasks: Iterable[int]) -> None:
        """Make the missing heads of these tasks."""
        for task in tasks:
            if str(task) not in self.heads:
                self.heads[str(task)] = self.new_head(task)

    def new_head(self, task: int) -> nn.Module:
        """Make the output layer that a task starts with, without adding it."""
        # Seed the CPU's generator only: `torch.manual_seed` would also seed the GPUs.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(self.seed) + 1_000_003 * task)
            return self._make_head().to(self.like)

    def head(self, task: int) -> nn.Module:
        """The output layer of a task."""
        self.adapt([task])
        return self.heads[str(task)]

    def forward(self, x: Tensor, task: int | Tensor) -> Tensor:
        """Logits `[B, C]` of features `[B, F]`; `task` is one number, or one per row `[B]`."""
        if isinstance(task, Tensor):
            present = torch.unique(task).tolist()
            if len(present) > 1:
                logits = torch.stack([self.head(t)(x) for t in present], dim=1)
                index = torch.searchsorted(torch.tensor(present, device=task.device), task)
                return logits[torch.arange(len(x), device=x.device), index]
            task = int(present[0])
        logits_of_task: Tensor = self.head(task)(x)
        return logits_of_task

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        # A saved network has the heads of its tasks, but a new network has none yet.
        start = prefix + "heads."
        saved = {key[len(start) :].split(".")[0] for key in state_dict if key.startswith(start)}
        self.adapt(sorted(int(task) for task in saved))
        super()._load_from_state_dict(state_dict, prefix, *args)


def adapt_heads(network: nn.Module, tasks: Iterable[int]) -> None:
    """Make the missing heads of these tasks in every `MultiHead` of a network."""
    for module in network.modules():
        if isinstance(module, MultiHead):
            module.adapt(tasks)


class SingleHead(nn.Module):
    """One output layer for all tasks: predicting the class includes predicting the task.

    Outputs that are added later have layers of their own in `grown`, each with its own groups,
    posterior and prior, so that those before do not change.
    """

    def __init__(self, make_head: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.output = make_head()
        self.grown = nn.ModuleList()

    def forward(self, x: Tensor, task: int | Tensor) -> Tensor:
        """Logits `[B, C]` of features `[B, F]`; the task is ignored."""
        logits: Tensor = self.output(x)
        return (
            torch.cat([logits, *(layer(x) for layer in self.grown)], -1) if self.grown else logits
        )


def first_head(network: nn.Module) -> nn.Module | None:
    """The output layer of a single head or of the first task; None for other networks."""
    head = getattr(network, "head", None)
    if isinstance(head, MultiHead):
        return head.head(0)
    return head.output if isinstance(head, SingleHead) else None


def make_heads(
    features: int, classes: int, *, multi_head: bool, posterior: LayerSettings | None
) -> MultiHead | SingleHead:
    """Make linear heads, one per task or one for all; a posterior of None means point estimates."""

    def head() -> nn.Module:
        if posterior is None:
            return PointLinear(features, classes)
        return BayesianLinear(features, classes, posterior=posterior)

    return (MultiHead if multi_head else SingleHead)(head)
