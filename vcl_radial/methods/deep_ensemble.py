"""Deep ensembles (Lakshminarayanan, Pritzel and Blundell 2017) of points or of posteriors.

M networks with different initial weights, m = 1 .. M, are trained together, on the same batches:

    loss = sum over m of [ mean NLL_m + kl_weight * KL(q_m || p_m) / N ]

and predict as a mixture with equal weights, p(y | x) = 1/M sum_m p_m(y | x). With posteriors (a
Radial BNN ensemble in Farquhar, Osborne and Gal 2020, section 4.1), the posterior of each member
becomes its prior for the next task, as in `vcl`. Point estimates carry only their weights, as in
`naive`. The original method also predicts a variance for each input and trains on adversarial
examples; this implementation does neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import Count
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import VariationalWeights
from vcl_radial.nn.movement import LayerMovement
from vcl_radial.nn.restart import restarted


class DeepEnsemble(VCL):
    """Train M networks at once, and mix their predictions.

    Args:
        network: the first member, with a posterior or without; the others are copies with new
            initial weights (see `vcl_radial.nn.restart`).
        members: M, the number of networks.
        eval_samples: weight samples in a prediction, over all members together; rounded up to a
            multiple of M, so that all members have the same weight.
        settings: settings of `Method`.

    Raises:
        UserError: there is no member.
    """

    carries = "the weights of every member, or their posteriors, which become the priors"
    posteriors = frozenset()

    def __init__(
        self, network: nn.Module, *, members: Count = 5, eval_samples: int = 100, **settings: Any
    ) -> None:
        rounds = -(-eval_samples // members)
        copies = (restarted(network) for _ in range(members - 1))
        super().__init__(_Members([network, *copies]), eval_samples=rounds * members, **settings)
        posteriors = (m for m in self.network.modules() if isinstance(m, VariationalWeights))
        self.memoryless = next(posteriors, None) is None  # type: ignore[misc]

    @property
    def members(self) -> _Members:
        """The networks."""
        assert isinstance(self.network, _Members)
        return self.network

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs of a step, `[M * train_samples, B, C]`, in the order of the members."""
        outputs = []
        for member in self.members:
            with self.using(member):
                outputs.append(super().outputs(batch))
        return torch.stack(outputs) if self.train_samples == 1 else torch.cat(outputs)

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The sum over the members of their mean NLLs, nats per point."""
        return len(self.members) * super().nll(outputs, targets)

    def end_task(self, task: Task) -> None:
        """Make each member's posterior its prior; `movement` is the mean over the members."""
        super().end_task(task)
        layers = len(self.movement) // len(self.members)
        self.movement = [
            _mean([self.movement[at] for at in range(layer, len(self.movement), layers)])
            for layer in range(layers)
        ]

    def draws(
        self,
        x: Tensor,
        task: int | Tensor = 0,
        *,
        samples: int | None = None,
        seed: int | None = None,
        differentiable: bool = False,
    ) -> Tensor:
        """Outputs `[S, B, C]`, S / M from every member.

        If S is not a multiple of M, the seed chooses the members with one sample more.
        """
        samples = self.eval_samples if samples is None else samples
        seed = self.eval_seed if seed is None else seed
        members = self.members
        in_turn = list(range(len(members))) * (samples // len(members))
        at_random = torch.randperm(len(members), generator=torch.Generator().manual_seed(seed))
        members.turns = iter([*in_turn, *at_random[: samples % len(members)].tolist()])
        try:
            return super().draws(x, task, samples=samples, seed=seed, differentiable=differentiable)
        finally:
            members.turns = None

    def outputs_at_means(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """Outputs at the means of every member, `[M, B, C]`."""
        outputs = []
        for member in self.members:
            with self.using(member):
                outputs.append(super().outputs_at_means(x, task))
        return torch.cat(outputs)


def _mean(movements: Sequence[LayerMovement]) -> LayerMovement:
    """The mean over members of a layer's movement."""
    _, layer = movements[0].layer.split(".", 1)
    numbers = torch.tensor([row[1:] for row in movements], dtype=torch.float64)
    return LayerMovement(layer, *numbers.mean(0).tolist())


class _Members(nn.ModuleList):
    """The members; a call evaluates one of them, in turn or at random."""

    turns: Iterator[int] | None = None

    def forward(self, *inputs: Any) -> Tensor:
        turn = int(torch.randint(len(self), ())) if self.turns is None else next(self.turns)
        output: Tensor = self[turn](*inputs)
        return output
