"""The first task's features for all tasks: later tasks train heads alone (a reference).

With a head for each task it forgets nothing, and it learns nothing that the first task's features
do not contain. A prior that fixes every weight of the body gives this method, so a method that does
not forget is only useful if it learns more than this one. There is no published row. It is the
limit of `vcl_radial.methods.l2` as lambda goes to infinity, except that the heads are free.
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
    """loss = mean NLL; after the first task it is a function of the head's weights alone.

    The running averages of a body's batch norms are fixed with its weights.

    Raises:
        UserError: the network has no `MultiHead` or `SingleHead` to leave free.
    """

    carries = "the body of the first task, and each task's head"
    frozen = False
    _frozen_norms: Sequence[nn.Module] = ()

    def output(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """The outputs, as in `Method`; the norms of a frozen body stay in evaluation mode."""
        for norm in self._frozen_norms:
            norm.eval()
        return super().output(x, task)

    def end_task(self, task: Task) -> None:
        """Fix every weight that belongs to no head."""
        self._freeze()

    def state_dict(self) -> dict[str, Any]:
        """The network, and whether its body is fixed."""
        return super().state_dict() | {"frozen": self.frozen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        if state["frozen"]:
            self._freeze()
        elif self.frozen:
            self.frozen, self._frozen_norms = False, ()
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
        in_heads = {id(module) for head in heads for module in head.modules()}
        self._frozen_norms = [
            module
            for module in self.network.modules()
            if id(module) not in in_heads and getattr(module, "running_mean", None) is not None
        ]
        self.frozen = True
