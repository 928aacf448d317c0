"""The gradient of the variational objective without autograd through posterior and KL.

With one draw w = mean + scale * noise per forward pass, g = d NLL / dw and scale = softplus(rho),

    d NLL / d mean = g,    d NLL / d rho = g * noise * sigmoid(rho),

and the families know the gradient of their KL (`Posterior.kl_gradients`). So autograd only has to
go as far as the drawn weights. On a CPU, where the optimiser is Adam, gradient, step and the next
scale are one compiled pass (`vcl_radial.native`); elsewhere the gradients go to `.grad`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.optim import Adam, Optimizer

from vcl_radial import native
from vcl_radial.nn.weights import PosteriorBlock
from vcl_radial.posteriors import Gaussian, Posterior, Radial, RadialEq44

_NATIVE: dict[tuple[type[Posterior], type[Posterior]], native.Divergence] = {
    (Gaussian, Gaussian): native.Divergence.GAUSSIAN,
    (Radial, Gaussian): native.Divergence.QUADRATIC,
    (Radial, Radial): native.Divergence.RADIAL,
    (RadialEq44, Gaussian): native.Divergence.QUADRATIC,
    (RadialEq44, RadialEq44): native.Divergence.QUADRATIC,
}


def native_divergence(
    family: type[Posterior], prior_family: type[Posterior]
) -> native.Divergence | None:
    """What `vcl_radial.native` calls the KL of a family to a prior's family, where it has it."""
    return _NATIVE.get((family, prior_family))


class ClosedFormGradients:
    """Takes over the draws of a network's blocks until `release`.

    Between an optimiser's `zero_grad` and its `step` come forward and backward passes through the
    network, as many as you like, of a loss *without* the KL; `before_step` then adds the KL's
    gradient, and the optimiser's own `step` does what is left.

    Args:
        network: any module with `PosteriorBlock`s in it.
    """

    def __init__(self, network: nn.Module) -> None:
        modules = network.modules()
        self._drawn = {m: _Drawn(m) for m in modules if isinstance(m, PosteriorBlock)}

    @staticmethod
    def serves(network: nn.Module) -> bool:
        """Whether there are blocks, and each has a KL to its prior whose gradient is known."""
        blocks = [module for module in network.modules() if isinstance(module, PosteriorBlock)]
        return bool(blocks) and all(
            block.family.kl_gradients(block.prior_family, []) is not None for block in blocks
        )

    def release(self) -> None:
        """Give the draws back to the blocks."""
        for block in self._drawn:
            block.sampler = None
            # The compiled softplus is another's to the last bit: what comes next must not depend
            # on whether it comes after training or after a checkpoint.
            block.forget_scale()

    def before_step(
        self, optimizer: Optimizer, with_kl: Iterable[PosteriorBlock], kl_factor: float
    ) -> None:
        """Step where the compiled pass can; put gradients into `.grad` where it cannot.

        Args:
            optimizer: whose step follows.
            with_kl: blocks whose KL is in the objective, drawn or not.
            kl_factor: of the KL, in nats per point: KL weight / N.
        """
        counted = set(with_kl)
        groups = _groups_by_parameter(optimizer)
        in_torch = []
        for block, drawn in self._drawn.items():
            factor = kl_factor if block in counted else 0.0
            if drawn.grad is None:
                if not factor:
                    continue
                drawn.grad = torch.zeros_like(block.mean), torch.zeros_like(block.mean)
            if not _native_step(block, drawn, groups, factor):
                in_torch.append((block, drawn, factor))
        _fill_gradients(in_torch)
        for drawn in self._drawn.values():
            drawn.forget()


class _Drawn:
    """The draws of a block since the last step, and the gradient with respect to them."""

    def __init__(self, block: PosteriorBlock) -> None:
        self.block = block
        self.grad: tuple[Tensor, Tensor | None] | None = None
        """With respect to mean and scale; None for the scale: it is that of the mean * noise."""
        self.noise: Tensor | None = None
        self.step = 0
        self._lent: list[tuple[Tensor, Tensor]] = []
        self._free: list[tuple[Tensor, Tensor]] = []
        self.divergence = (
            native_divergence(block.family, block.prior_family)
            if native.serves(block.mean, block.rho, block.prior_mean, block.prior_scale)
            else None
        )
        block.sampler = self.draw
        block.forget_scale()

    @property
    def scale(self) -> Tensor:
        """The block's, kept up to date by the compiled pass."""
        return self.block.scale()

    def draw(self) -> Tensor:
        w: Tensor = _Draw.apply(self.block.mean, self.block.rho, self)
        return w

    def draw_now(self) -> tuple[Tensor, Tensor]:
        """Weights and their noise, in buffers that are used again after the step."""
        block, scale = self.block, self.scale
        if self.divergence is None:
            noise = block.family(block.mean, scale).noise(1).squeeze(0)
            return torch.addcmul(block.mean, scale, noise), noise
        if not self._free:
            self._free.append((torch.empty_like(scale), torch.empty_like(scale)))
        w, noise = buffers = self._free.pop()
        self._lent.append(buffers)
        # In the order of `noise` of the families, so that the numbers are the same.
        noise.normal_()
        radius = torch.randn(len(scale), 1) if issubclass(block.family, Radial) else None
        native.draw(w, noise, radius, block.mean, scale)
        return w, noise

    def add(self, grad: Tensor, noise: Tensor) -> None:
        """Take the gradient with respect to one draw."""
        if self.grad is None:
            self.grad, self.noise = (grad, None), noise
            return
        grad_mean, grad_scale = self.grad
        if grad_scale is None:
            assert self.noise is not None
            grad_scale, self.noise = grad_mean * self.noise, None
        self.grad = grad_mean + grad, torch.addcmul(grad_scale, grad, noise)

    def forget(self) -> None:
        """Begin a new step."""
        self.grad = self.noise = None
        self.step += 1
        self._free += self._lent
        self._lent.clear()


class _Draw(torch.autograd.Function):
    """W = mean + scale * noise, whose gradient goes to `_Drawn` and ends there."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, rho: Tensor, drawn: _Drawn) -> Tensor:
        w, noise = drawn.draw_now()
        ctx.drawn, ctx.noise, ctx.step = drawn, noise, drawn.step
        return w.detach()  # an alias: what is made of it must not outlive the buffer's step

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, None]:
        if ctx.step != ctx.drawn.step:
            raise RuntimeError("backward through weights that were drawn before the last step")
        ctx.drawn.add(grad.contiguous(), ctx.noise)
        return None, None, None


def _fill_gradients(drawn_blocks: list[tuple[PosteriorBlock, _Drawn, float]]) -> None:
    """Put the gradient of NLL and KL into `.grad` of mean and rho."""
    families: dict[Any, list[tuple[PosteriorBlock, _Drawn, float]]] = {}
    for entry in drawn_blocks:
        families.setdefault((entry[0].family, entry[0].prior_family), []).append(entry)
    for (family, prior_family), entries in families.items():
        pairs = [
            ((b.mean.detach() - b.prior_mean).div_(b.prior_scale), d.scale / b.prior_scale)
            for b, d, _ in entries
        ]
        kl_gradients = family.kl_gradients(prior_family, pairs)
        for (block, drawn, factor), (kl_a, kl_s) in zip(entries, kl_gradients, strict=True):
            assert drawn.grad is not None
            grad_mean, grad_scale = drawn.grad
            if grad_scale is None:
                assert drawn.noise is not None
                grad_scale = grad_mean * drawn.noise
            per_nat = factor / block.prior_scale
            block.mean.grad = kl_a.mul_(per_nat).add_(grad_mean)
            block.rho.grad = kl_s.mul_(per_nat).add_(grad_scale).mul_(block.rho.sigmoid())


def _native_step(
    block: PosteriorBlock,
    drawn: _Drawn,
    groups: dict[Tensor, tuple[Adam, dict[str, Any]]],
    kl_factor: float,
) -> bool:
    """Whether the compiled pass has made the step."""
    if drawn.divergence is None or block.mean not in groups or block.rho not in groups:
        return False
    assert drawn.grad is not None
    (optimizer, group), (_, rho_group) = groups[block.mean], groups[block.rho]
    beta1, beta2 = group["betas"]
    native.adam_step(
        _adam_state(optimizer, group, block.mean),
        _adam_state(optimizer, rho_group, block.rho),
        drawn.scale,
        (block.prior_mean, block.prior_scale),
        (*drawn.grad, drawn.noise),
        drawn.divergence,
        native.StepSettings(kl_factor, beta1, beta2, group["eps"]),
    )
    return True


def _adam_state(optimizer: Adam, group: dict[str, Any], parameter: Tensor) -> native.AdamState:
    """The state that `torch.optim.Adam` keeps, made as it makes it, one step on."""
    state = optimizer.state[parameter]
    if not state:
        state["step"] = torch.zeros(())
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
        for name in names if group["amsgrad"] else names[:2]:
            state[name] = torch.zeros_like(parameter)
    state["step"] += 1
    return native.AdamState(
        parameter,
        state["exp_avg"],
        state["exp_avg_sq"],
        state.get("max_exp_avg_sq"),
        int(state["step"]),
        float(group["lr"]),
    )


def _groups_by_parameter(optimizer: Optimizer) -> dict[Tensor, tuple[Adam, dict[str, Any]]]:
    """The options of each parameter whose step the compiled pass can make."""
    if type(optimizer) is not Adam:
        return {}
    shared = {(group["betas"], group["eps"], group["amsgrad"]) for group in optimizer.param_groups}
    if len(shared) > 1:  # mean and rho of a block are stepped together
        return {}
    return {
        parameter: (optimizer, group)
        for group in optimizer.param_groups
        if not (group["weight_decay"] or group["maximize"])
        for parameter in group["params"]
    }
