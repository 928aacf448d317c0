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
from vcl_radial.nn.weights import PosteriorBlock, VariationalWeights
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
        self._optimizer: Optimizer | None = None
        self._compiled: _NativeAdam | None = None

    @staticmethod
    def serves(network: nn.Module) -> bool:
        """Whether there are blocks, and each has a KL to its prior whose gradient is known."""
        modules = list(network.modules())
        if not all(m.all_in_blocks for m in modules if isinstance(m, VariationalWeights)):
            return False
        blocks = [module for module in modules if isinstance(module, PosteriorBlock)]
        return bool(blocks) and all(
            block.family.kl_gradients(block.prior_family, []) is not None for block in blocks
        )

    def release(self) -> None:
        """Give the draws back to the blocks."""
        for block in self._drawn:
            block.sampler = None

    def before_step(
        self, optimizer: Optimizer, with_kl: Iterable[PosteriorBlock], kl_factor: float
    ) -> None:
        """Step where the compiled pass can; put gradients into `.grad` where it cannot.

        Args:
            optimizer: whose step follows; the same one in every step.
            with_kl: blocks whose KL is in the objective, drawn or not.
            kl_factor: of the KL, in nats per point: KL weight / N.
        """
        counted = set(with_kl)
        native_adam = self._native_adam(optimizer)
        in_torch = []
        for block, drawn in self._drawn.items():
            factor = kl_factor if block in counted else 0.0
            if drawn.gradient is None:
                if not factor:
                    continue
                zero = torch.zeros_like(block.mean)
                drawn.gradient = native.Gradient(zero, zero, None)
            if native_adam is None or not native_adam.step(drawn, factor):
                in_torch.append((drawn, factor))
        _fill_gradients(in_torch)
        others = {drawn for drawn, _ in in_torch}
        for drawn in self._drawn.values():
            drawn.forget(scale=drawn in others)

    def _native_adam(self, optimizer: Optimizer) -> _NativeAdam | None:
        if self._optimizer is not optimizer:
            self._optimizer = optimizer
            self._compiled = _NativeAdam(optimizer) if type(optimizer) is Adam else None
        return self._compiled


class _Drawn:
    """The draws of a block since the last step, and the gradient with respect to them."""

    def __init__(self, block: PosteriorBlock) -> None:
        self.block = block
        self.gradient: native.Gradient | None = None
        self.step = 0
        self._known_scale: tuple[tuple[int, int], Tensor] | None = None
        self._lent: list[tuple[Tensor, Tensor]] = []
        self._free: list[tuple[Tensor, Tensor]] = []
        self.divergence = (
            native_divergence(block.family, block.prior_family)
            if native.serves(block.mean, block.rho, block.prior_mean, block.prior_scale)
            else None
        )
        block.sampler = self.draw

    @property
    def scale(self) -> Tensor:
        """softplus(rho), kept up to date by the compiled pass where that has made the last step."""
        rho = self.block.rho
        # PyTorch counts what it writes, but for fused optimisers; those are told of in `forget`.
        state = rho.data_ptr(), rho._version
        if self._known_scale is None or self._known_scale[0] != state:
            self._known_scale = state, self.block.scale()
        return self._known_scale[1]

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
        if self.gradient is None:
            self.gradient = native.Gradient(grad, None, noise)
            return
        mean, scale = self.gradient.mean, _of_scale(self.gradient)
        self.gradient = native.Gradient(mean + grad, torch.addcmul(scale, grad, noise), None)

    def forget(self, scale: bool) -> None:
        """Begin a new step; forget the scale if an optimiser is going to change rho."""
        if scale:
            self._known_scale = None
        self.gradient = None
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


def _of_scale(gradient: native.Gradient) -> Tensor:
    if gradient.scale is not None:
        return gradient.scale
    assert gradient.noise is not None
    return gradient.mean * gradient.noise


def _fill_gradients(entries: list[tuple[_Drawn, float]]) -> None:
    """Put the gradient of NLL and KL into `.grad` of mean and rho."""
    families: dict[Any, list[tuple[_Drawn, float]]] = {}
    for entry in entries:
        block = entry[0].block
        families.setdefault((block.family, block.prior_family), []).append(entry)
    for (family, prior_family), alike in families.items():
        blocks = [drawn.block for drawn, _ in alike]
        pairs = [
            ((b.mean.detach() - b.prior_mean).div_(b.prior_scale), d.scale / b.prior_scale)
            for (d, _), b in zip(alike, blocks, strict=True)
        ]
        kl_gradients = family.kl_gradients(prior_family, pairs)
        for (drawn, factor), block, (kl_a, kl_s) in zip(alike, blocks, kl_gradients, strict=True):
            assert drawn.gradient is not None
            per_nat = factor / block.prior_scale
            grad_scale = kl_s.mul_(per_nat).add_(_of_scale(drawn.gradient))
            block.mean.grad = kl_a.mul_(per_nat).add_(drawn.gradient.mean)
            block.rho.grad = grad_scale.mul_(block.rho.sigmoid())


class _NativeAdam:
    """The compiled pass in place of `torch.optim.Adam`, in whose state it keeps the moments."""

    def __init__(self, optimizer: Adam) -> None:
        self.optimizer = optimizer
        self.group_of = {p: group for group in optimizer.param_groups for p in group["params"]}
        self.blocks: dict[PosteriorBlock, native.AdamBlock] = {}

    def step(self, drawn: _Drawn, kl_factor: float) -> bool:
        """Whether the block could be stepped, and has been."""
        block = drawn.block
        groups = [self.group_of.get(p) for p in (block.mean, block.rho)]
        if drawn.divergence is None or not _alike(groups):
            return False
        compiled = self.blocks.get(block)
        if compiled is None or not compiled.is_of(block.mean, block.rho):
            mean, rho = ((p.detach(), self._moments(p)) for p in (block.mean, block.rho))
            prior = block.prior_mean, block.prior_scale
            compiled = native.AdamBlock(mean, rho, prior, drawn.divergence)
            self.blocks[block] = compiled
        counts = [self.optimizer.state[p]["step"] for p in (block.mean, block.rho)]
        torch._foreach_add_(counts, 1)
        group, rho_group = groups
        assert group is not None
        assert rho_group is not None
        assert drawn.gradient is not None
        compiled.step(
            int(counts[0]),
            (float(group["lr"]), float(rho_group["lr"])),
            group["betas"],
            group["eps"],
            kl_factor,
            drawn.scale,
            drawn.gradient,
        )
        return True

    def _moments(self, parameter: Tensor) -> native.Moments:
        """Made as `torch.optim.Adam` makes them."""
        state = self.optimizer.state[parameter]
        if not state:
            names = ["exp_avg", "exp_avg_sq"]
            names += ["max_exp_avg_sq"] * self.group_of[parameter]["amsgrad"]
            state["step"] = torch.zeros(())
            state.update({name: torch.zeros_like(parameter) for name in names})
        return native.Moments(state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq"))


def _alike(groups: list[dict[str, Any] | None]) -> bool:
    """Whether the options of mean and rho let them be stepped together."""
    mean, rho = groups
    if mean is None or rho is None:
        return False
    plain = not any(group["weight_decay"] or group["maximize"] for group in (mean, rho))
    return plain and all(mean[key] == rho[key] for key in ("betas", "eps", "amsgrad"))
