"""The compiled pass in place of `torch.optim.Adam`."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Adam

from vcl_radial import native
from vcl_radial.nn.drawn_layer import DrawnBlock


class _Compiled(NamedTuple):
    """What steps a block, and the state and options of its mean and rho that it was made for."""

    block: native.AdamBlock
    states: tuple[dict[str, Any], dict[str, Any]]
    groups: tuple[dict[str, Any], dict[str, Any]]


class CompiledAdam:
    """Steps blocks as an optimiser would, in whose state it keeps moments and counts."""

    def __init__(self, optimizer: Adam) -> None:
        self.optimizer = optimizer
        self._group_of = {p: group for group in optimizer.param_groups for p in group["params"]}
        self._compiled: dict[DrawnBlock, _Compiled] = {}
        self._prepared: list[native.AdamBlock] = []

    def step(
        self, drawn: DrawnBlock, gradient: native.Gradient, kl_factors: tuple[float, float]
    ) -> bool:
        """Whether the block can be stepped, and will be by `finish`; KL factors of mean and rho."""
        mean, rho = drawn.block.mean, drawn.block.rho
        compiled = self._compiled.get(drawn)
        if compiled is None or not self._serves(compiled, mean, rho):
            compiled = self._made(drawn, mean, rho)
        elsewhere = mean.grad is not None or rho.grad is not None
        frozen = not (mean.requires_grad and rho.requires_grad)
        if compiled is None or elsewhere or frozen or not _alike(*compiled.groups):
            self._compiled.pop(drawn, None)  # what it knows of the last step will be out of date
            return False
        group, rho_group = compiled.groups
        of_mean, of_rho = compiled.states
        compiled.block.prepare(
            # Means may have been trained before.
            (int(of_mean["step"].item()) + 1, int(of_rho["step"].item()) + 1),
            (float(group["lr"]), float(rho_group["lr"])),
            group["betas"],
            group["eps"],
            kl_factors,
            drawn.scale,
            gradient,
        )
        self._prepared.append(compiled.block)
        return True

    def finish(self) -> None:
        """Make the steps of the blocks together."""
        if self._prepared:
            native.make_steps(self._prepared)
            self._prepared.clear()

    def _serves(self, compiled: _Compiled, mean: Tensor, rho: Tensor) -> bool:
        """Whether mean and rho are where they were; Avalanche empties the state of an optimiser."""
        state = self.optimizer.state
        same = state.get(mean) is compiled.states[0] and state.get(rho) is compiled.states[1]
        return same and compiled.block.points_to(mean, rho)

    def _made(self, drawn: DrawnBlock, mean: Tensor, rho: Tensor) -> _Compiled | None:
        """For where mean and rho are now; None where the pass does not serve."""
        group, rho_group = self._group_of.get(mean), self._group_of.get(rho)
        if drawn.divergence is None or group is None or rho_group is None:
            return None
        states = self._state_of(mean), self._state_of(rho)
        block = native.AdamBlock(
            (mean.detach(), _moments(states[0])),
            (rho.detach(), _moments(states[1])),
            (drawn.block.prior_mean, drawn.block.prior_scale),
            drawn.divergence,
            drawn.block.stretch,
            (states[0]["step"], states[1]["step"]),
        )
        self._compiled[drawn] = _Compiled(block, states, (group, rho_group))
        return self._compiled[drawn]

    def _state_of(self, parameter: Tensor) -> dict[str, Any]:
        """Made as `torch.optim.Adam` makes it."""
        state: dict[str, Any] = self.optimizer.state[parameter]
        if not state:
            names = ["exp_avg", "exp_avg_sq"]
            names += ["max_exp_avg_sq"] * self._group_of[parameter]["amsgrad"]
            state["step"] = torch.zeros(())
            state.update({name: torch.zeros_like(parameter) for name in names})
        return state


def _moments(state: dict[str, Any]) -> native.Moments:
    return native.Moments(state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq"))


def _alike(mean: dict[str, Any], rho: dict[str, Any]) -> bool:
    """Whether the options of mean and rho let them be stepped together."""
    plain = not any(group["weight_decay"] or group["maximize"] for group in (mean, rho))
    return plain and all(mean[key] == rho[key] for key in ("betas", "eps", "amsgrad"))
