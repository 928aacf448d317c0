"""The compiled pass that replaces `torch.optim.Adam`."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Adam

from vcl_radial import native
from vcl_radial.nn.drawn_layer import DrawnBlock


class _Compiled(NamedTuple):
    """The compiled step of a block, with the optimiser's states and groups of its mean and rho."""

    block: native.AdamBlock
    states: tuple[dict[str, Any], dict[str, Any]]
    groups: tuple[dict[str, Any], dict[str, Any]]


class CompiledAdam:
    """Update blocks as an optimiser does, with moments and counts in the optimiser's state."""

    def __init__(self, optimizer: Adam) -> None:
        self.optimizer = optimizer
        self._group_of = {p: group for group in optimizer.param_groups for p in group["params"]}
        self._compiled: dict[DrawnBlock, _Compiled] = {}
        self._prepared: list[native.AdamBlock] = []

    def step(
        self, drawn_block: DrawnBlock, gradient: native.Gradient, kl_factors: tuple[float, float]
    ) -> bool:
        """Prepare the step of a block for `finish`; False if the compiled pass does not support it.

        `kl_factors` are the KL's factors in the gradients of mean and rho.
        """
        mean, rho = drawn_block.block.mean, drawn_block.block.rho
        compiled = self._compiled.get(drawn_block)
        if compiled is None or not self._serves(compiled, mean, rho):
            compiled = self._make(drawn_block, mean, rho)
        has_grad = mean.grad is not None or rho.grad is not None
        frozen = not (mean.requires_grad and rho.requires_grad)
        if compiled is None or has_grad or frozen or not _compatible(*compiled.groups):
            self._compiled.pop(drawn_block, None)  # its sums of the last step will be out of date
            return False
        group, rho_group = compiled.groups
        mean_state, rho_state = compiled.states
        compiled.block.prepare(
            # The numbers of steps can differ, because means may have been trained before.
            (int(mean_state["step"].item()) + 1, int(rho_state["step"].item()) + 1),
            (float(group["lr"]), float(rho_group["lr"])),
            group["betas"],
            group["eps"],
            kl_factors,
            drawn_block.scale,
            gradient,
        )
        self._prepared.append(compiled.block)
        return True

    def finish(self) -> None:
        """Take the prepared steps of all blocks together."""
        if self._prepared:
            native.make_steps(self._prepared)
            self._prepared.clear()

    def _serves(self, compiled: _Compiled, mean: Tensor, rho: Tensor) -> bool:
        """Whether the compiled step is still valid; Avalanche resets the state of an optimiser."""
        state = self.optimizer.state
        is_current = state.get(mean) is compiled.states[0] and state.get(rho) is compiled.states[1]
        return is_current and compiled.block.points_to(mean, rho)

    def _make(self, drawn_block: DrawnBlock, mean: Tensor, rho: Tensor) -> _Compiled | None:
        """The compiled step for the current tensors; None if it is not supported."""
        group, rho_group = self._group_of.get(mean), self._group_of.get(rho)
        if drawn_block.divergence is None or group is None or rho_group is None:
            return None
        states = self._state_of(mean), self._state_of(rho)
        block = native.AdamBlock(
            (mean.detach(), _moments(states[0])),
            (rho.detach(), _moments(states[1])),
            (drawn_block.block.prior_mean, drawn_block.block.prior_scale),
            drawn_block.divergence,
            drawn_block.block.stretch,
            (states[0]["step"], states[1]["step"]),
        )
        self._compiled[drawn_block] = _Compiled(block, states, (group, rho_group))
        return self._compiled[drawn_block]

    def _state_of(self, parameter: Tensor) -> dict[str, Any]:
        """The optimiser's state of a parameter, initialised as in `torch.optim.Adam`."""
        state: dict[str, Any] = self.optimizer.state[parameter]
        if not state:
            names = ["exp_avg", "exp_avg_sq"]
            names += ["max_exp_avg_sq"] * self._group_of[parameter]["amsgrad"]
            state["step"] = torch.zeros(())
            state.update({name: torch.zeros_like(parameter) for name in names})
        return state


def _moments(state: dict[str, Any]) -> native.Moments:
    return native.Moments(state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq"))


def _compatible(mean: dict[str, Any], rho: dict[str, Any]) -> bool:
    """Whether one compiled step supports the options of both mean and rho."""
    plain = not any(group["weight_decay"] or group["maximize"] for group in (mean, rho))
    return plain and all(mean[key] == rho[key] for key in ("betas", "eps", "amsgrad"))
