"""The first task's features for all tasks: after it only heads are trained (a reference).

Nothing is forgotten with a head for each task, and nothing learnt that the first task's features do
not hold. A prior that holds every weight of the body fast ends here, so a method that remembers has
yet to show that it learns more than this one. No published row; the limit lambda to infinity of
`vcl_radial.methods.l2` but for the heads, which are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from vcl_radial.errors import UserError
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Task
from vcl_radial.nn.heads import MultiHead, SingleHead
from vcl_radial.nn.parameters import parameters_of_heads


class FrozenBody(Method):
    """loss = mean NLL, of the head's weights alone once a task has been learnt.

    The running averages of a body's batch norms rest with its weights.

    Raises:
        UserError: the network has no `MultiHead` or `SingleHead` to leave free.
    """

    frozen = False
    _resting: Sequence[nn.Module] = ()

    def output(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """As of every method; the norms of a frozen body take no part in training."""
        for norm in self._resting:
            norm.eval()
        return super().output(x, task)

    def end_task(self, task: Task) -> None:
        """Fix every weight that belongs to no head."""
        self._freeze()

    def state_dict(self) -> dict[str, Any]:
        """The network, and whether its body is fixed."""
        return super().state_dict() | {"frozen": self.frozen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        if state["frozen"]:
            self._freeze()
        elif self.frozen:
            self.frozen, self._resting = False, ()
            for parameter in self._fixed:
                parameter.requires_grad_(True)

    def _freeze(self) -> None:
        heads = [m for m in self.network.modules() if isinstance(m, MultiHead | SingleHead)]
        if not heads:
            raise UserError("frozen_body trains heads: give it a network with a MultiHead")
        if self.frozen:
            return
        free = parameters_of_heads(self.network)
        body = (weight for weight in self.network.parameters() if id(weight) not in free)
        self._fixed = [weight for weight in body if weight.requires_grad]
        for parameter in self._fixed:
            parameter.requires_grad_(False)
        of_heads = {id(module) for head in heads for module in head.modules()}
        self._resting = [
            module
            for module in self.network.modules()
            if id(module) not in of_heads and getattr(module, "running_mean", None) is not None
        ]
        self.frozen = True
