"""The base class of methods with one quadratic penalty: L2, EWC, SI, MAS and Laplace."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vcl_radial.curvature import Quadratic
from vcl_radial.methods.base import Method


class QuadraticMethod(Method):
    """A method that stores past tasks as one `Quadratic`; subclasses define `end_task`.

    The penalty leaves out the heads of other tasks, which are not carried.

    Attributes:
        past: the quadratic of the finished tasks.

    Raises:
        UserError: the network has a posterior; these methods need point estimates.
    """

    carries = "one anchor, the last task's weights, and a diagonal precision"
    posteriors = frozenset({"none"})

    def __init__(self, network: nn.Module, **settings: Any) -> None:
        super().__init__(network, **settings)
        self.past = Quadratic()

    def penalty(self) -> Tensor | float:
        """R of the body and of the heads in use, in nats (or 0 with R's gradient)."""
        return self.past.penalty(self.parameters_in_use(), self.loss_value)

    def state_dict(self) -> dict[str, Any]:
        """The network and its past, as plain tensors and numbers."""
        return super().state_dict() | {"past": self.past.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self.past.load_state_dict(state["past"], self.device)
