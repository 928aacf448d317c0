"""Checks of a network before and after the end of a task.

They cost almost nothing, and stop a run with one line if it would otherwise continue with
meaningless numbers.
"""

from __future__ import annotations

from torch import Tensor, nn

from vcl_radial.errors import UserError


class NetworkUpkeep:
    """Check that the end of a task keeps a network's shapes and finite numbers.

    Args:
        network: the network; the task has begun.
        task: number of the task, from 0.
        owner: name of the class that ends the task, for messages.
        hook: name of the method of this class that ends the task.
    """

    def __init__(self, network: nn.Module, task: int, owner: str, hook: str) -> None:
        self._network, self._where = network, f"after task {task + 1}"
        self._owner, self._hook = owner, hook
        self._shapes = {name: tensor.shape for name, tensor in self._tensors().items()}
        self._was_finite = True

    def training_ended(self) -> None:
        """Record whether all numbers are finite before the task ends."""
        self._was_finite = self._not_finite() is None

    def task_ended(self) -> None:
        """Check the network after the task has ended.

        Raises:
            UserError: a tensor is gone, has another shape, or is no longer finite.
        """
        tensors = self._tensors()
        for name, shape in self._shapes.items():
            if name not in tensors:
                raise UserError(
                    f"{self._owner}: {name} is gone {self._where}: keep what the network was made "
                    "of"
                )
            if tensors[name].shape != shape:
                raise UserError(
                    f"{self._owner}: {name} had shape {tuple(shape)} and has "
                    f"{tuple(tensors[name].shape)} {self._where}: write into parameters with "
                    "copy_() and leave their shapes as they are"
                )
        if self._was_finite and (broken := self._not_finite()) is not None:
            raise UserError(
                f"{self._owner}: {broken} holds nan or inf {self._where}, and did not when its "
                f"training ended: look at {self._hook}"
            )

    def _tensors(self) -> dict[str, Tensor]:
        return {n: t for n, t in self._network.state_dict().items() if isinstance(t, Tensor)}

    def _not_finite(self) -> str | None:
        """The name of a tensor that is not finite."""
        tensors = self._tensors().items()
        return next((name for name, tensor in tensors if not tensor.isfinite().all()), None)
