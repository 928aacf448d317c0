"""The gradient of the variational objective without autograd through posterior and KL.

With one draw w = mean + scale * noise per forward pass, g = d NLL / dw and scale = softplus(rho),

    d NLL / d mean = g,    d NLL / d rho = g * noise * sigmoid(rho),

and the families know the gradient of their KL (`Posterior.kl_gradients`). So autograd only has to
go as far as the drawn weights. On a CPU, where the optimiser is Adam, gradient, step and the next
scale are one compiled pass (`vcl_radial.native`); elsewhere the gradients go to `.grad`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.optim import Adam, Optimizer

from vcl_radial import native
from vcl_radial.nn.grouping import Layer
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
    """Takes over the draws of a network's layers until `release`.

    Between an optimiser's `zero_grad` and its `step` come forward and backward passes through the
    network, as many as you like, of a loss *without* the KL; `before_step` then adds the KL's
    gradient, and the optimiser's own `step` does what is left.

    Args:
        network: any module with `VariationalWeights` in it.
    """

    def __init__(self, network: nn.Module) -> None:
        weights = (m for m in network.modules() if isinstance(m, VariationalWeights))
        self._layers = [_DrawnLayer(layer) for layer in weights]
        self._drawn = {d.block: d for layer in self._layers for d in layer.drawn}
        self._optimizer: Optimizer | None = None
        self._compiled: _NativeAdam | None = None

    @staticmethod
    def serves(network: nn.Module) -> bool:
        """Whether there are blocks, and each has a KL to its prior whose gradient is known.

        What a class inherits is not known to be its own: a family has to have `kl_gradients` in
        the class itself, and layers and blocks draw and count their KL as the base classes do.
        """
        layers = [m for m in network.modules() if isinstance(m, VariationalWeights)]
        if not all(m.all_in_blocks for m in layers):
            return False
        blocks = [m for m in network.modules() if isinstance(m, PosteriorBlock)]
        return bool(blocks) and all(
            _as_the_base(block)
            and "kl_gradients" in vars(block.family)
            and block.family.kl_gradients(block.prior_family, []) is not None
            for block in blocks
        )

    def release(self) -> None:
        """Give the draws back to the layers."""
        for layer in self._layers:
            layer.weights.sampler = None

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
                drawn.gradient = native.Gradient(zero, None, zero, None)
            if native_adam is None or not native_adam.step(drawn, factor):
                in_torch.append((drawn, factor))
        if native_adam is not None:
            native_adam.finish()
        _fill_gradients(in_torch)
        for drawn, _ in in_torch:
            drawn.forget_scale()
        for layer in self._layers:
            layer.forget()

    def _native_adam(self, optimizer: Optimizer) -> _NativeAdam | None:
        if self._optimizer is not optimizer:
            self._optimizer = optimizer
            self._compiled = _NativeAdam(optimizer) if type(optimizer) is Adam else None
        return self._compiled


class _DrawnLayer:
    """The draws of a layer: those of its one block, or of one for the weight and one for the bias.

    Weight and bias leave as tensors of their own, and so do their gradients come back: neither is
    cut out of a block or put together again on the way.
    """

    def __init__(self, weights: VariationalWeights) -> None:
        self.weights = weights
        self.drawn = [_Drawn(block) for block in weights.posterior_blocks()]
        self.parameters = [p for d in self.drawn for p in (d.block.mean, d.block.rho)]
        self.compiled = all(d.divergence is not None for d in self.drawn)
        bias = sum(p.numel() for p in self.parameters) // 2 - weights.shape.numel()
        self.shapes = [weights.shape, torch.Size([bias])] if bias else [weights.shape]
        self.step = 0
        self._lent: list[list[Tensor]] = []
        self._free: list[list[Tensor]] = []
        weights.sampler = self.sample

    def sample(self) -> Layer:
        weight, *bias = _Draw.apply(self, *self.parameters)
        return weight, (bias[0] if bias else None)

    def draw(self) -> tuple[list[Tensor], list[Tensor]]:
        """Weight and bias, and the noise of each block."""
        if not self.compiled:
            noises = [d.block.family(d.block.mean, d.scale).noise(1).squeeze(0) for d in self.drawn]
            blocks = [
                torch.addcmul(d.block.mean, d.scale, noise)
                for d, noise in zip(self.drawn, noises, strict=True)
            ]
            return [t for t in self.weights.split(blocks) if t is not None], noises
        # In buffers that are used again after the step.
        if not self._free:
            shapes = [*self.shapes, *(d.block.mean.shape for d in self.drawn)]
            self._free.append([self.drawn[0].block.mean.new_empty(shape) for shape in shapes])
        buffers = self._free.pop()
        self._lent.append(buffers)
        tensors, noises = buffers[: len(self.shapes)], buffers[len(self.shapes) :]
        for drawn, parts, noise in zip(self.drawn, self.parts(tensors), noises, strict=True):
            drawn.draw(*parts, noise)
        return tensors, noises

    def parts(self, tensors: Sequence[Tensor]) -> list[tuple[Tensor, Tensor | None]]:
        """Of weight and bias, what belongs to each block."""
        if len(self.drawn) == len(tensors):
            return [(tensor, None) for tensor in tensors]
        weight, bias = tensors
        return [(weight, bias)]

    def add(self, grads: Sequence[Tensor], noises: list[Tensor]) -> None:
        """Take the gradient with respect to weight and bias of one draw."""
        parts = self.parts([grad.contiguous() for grad in grads])
        for drawn, (first, second), noise in zip(self.drawn, parts, noises, strict=True):
            drawn.add(native.Gradient(first, second, None, noise))

    def forget(self) -> None:
        """Begin a new step."""
        self.step += 1
        self._free += self._lent
        self._lent.clear()
        for drawn in self.drawn:
            drawn.gradient = None


class _Drawn:
    """A block, and the gradient with respect to its draws since the last step."""

    def __init__(self, block: PosteriorBlock) -> None:
        self.block = block
        self.gradient: native.Gradient | None = None
        self._known_scale: tuple[tuple[int, int], Tensor] | None = None
        self.divergence = (
            native_divergence(block.family, block.prior_family)
            if native.serves(block.mean, block.rho, block.prior_mean, block.prior_scale)
            else None
        )

    @property
    def scale(self) -> Tensor:
        """softplus(rho), kept up to date by the compiled pass where that has made the last step."""
        rho = self.block.rho
        # PyTorch counts what it writes, but for fused optimisers: see `forget_scale`.
        state = rho.data_ptr(), rho._version
        if self._known_scale is None or self._known_scale[0] != state:
            self._known_scale = state, self.block.scale()
        return self._known_scale[1]

    def forget_scale(self) -> None:
        """An optimiser is going to change rho."""
        self._known_scale = None

    def draw(self, first: Tensor, second: Tensor | None, noise: Tensor) -> None:
        """Draw into these tensors."""
        native.standard_normal(noise)
        radius = torch.randn(len(noise), 1) if issubclass(self.block.family, Radial) else None
        native.draw(first, second, noise, radius, self.block.mean, self.scale)

    def add(self, new: native.Gradient) -> None:
        """Take the gradient with respect to one draw."""
        if self.gradient is not None:
            together = [
                torch.add(*pair) for pair in zip(_both(self.gradient), _both(new), strict=True)
            ]
            new = native.Gradient(together[0], None, together[1], None)
        self.gradient = new


class _Draw(torch.autograd.Function):
    """W = mean + scale * noise, whose gradient goes to `_DrawnLayer` and ends there."""

    @staticmethod
    def forward(ctx: Any, layer: _DrawnLayer, *parameters: Tensor) -> tuple[Tensor, ...]:
        tensors, noises = layer.draw()
        ctx.layer, ctx.noises, ctx.step = layer, noises, layer.step
        # Aliases: what is made of them must not outlive the buffers' step.
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        if ctx.step != ctx.layer.step:
            raise RuntimeError("backward through weights that were drawn before the last step")
        ctx.layer.add(grads, ctx.noises)
        return (None,) * (1 + len(ctx.layer.parameters))


def _both(gradient: native.Gradient) -> tuple[Tensor, Tensor]:
    """With respect to mean and scale, `[groups, D]` each."""
    given = gradient.scale if gradient.scale is not None else gradient.noise
    assert given is not None
    parts = [part.reshape(len(given), -1) for part in gradient[:2] if part is not None]
    mean = torch.cat(parts, dim=1)
    return mean, (given if gradient.scale is not None else mean * given)


def _fill_gradients(entries: list[tuple[_Drawn, float]]) -> None:
    """Add the gradient of NLL and KL to `.grad` of mean and rho.

    There may be one already, of a term of the loss that was not made of the draws.
    """
    families: dict[Any, list[tuple[_Drawn, float]]] = {}
    for entry in entries:
        block = entry[0].block
        families.setdefault((block.family, block.prior_family), []).append(entry)
    for (family, prior_family), alike in families.items():
        blocks = [drawn.block for drawn, _ in alike]
        pairs = [
            (
                _stretched(b, (b.mean.detach() - b.prior_mean).div_(b.prior_scale)),
                d.scale / b.prior_scale,
            )
            for (d, _), b in zip(alike, blocks, strict=True)
        ]
        kl_gradients = family.kl_gradients(prior_family, pairs)
        for (drawn, factor), block, (kl_a, kl_s) in zip(alike, blocks, kl_gradients, strict=True):
            assert drawn.gradient is not None
            grad_mean, grad_scale = _both(drawn.gradient)
            per_nat = factor / block.prior_scale
            _add_grad(block.mean, _stretched(block, kl_a.mul_(per_nat)).add_(grad_mean))
            _add_grad(block.rho, kl_s.mul_(per_nat).add_(grad_scale).mul_(block.rho.sigmoid()))


def _stretched(block: PosteriorBlock, along_means: Tensor) -> Tensor:
    """Times the stretch of the block's KL, where it has one; in place."""
    return along_means if block.stretch is None else along_means.mul_(block.stretch)


def _add_grad(parameter: nn.Parameter, grad: Tensor) -> None:
    parameter.grad = grad if parameter.grad is None else parameter.grad + grad


def _as_the_base(block: PosteriorBlock) -> bool:
    """Whether a block, if its class is derived, draws and counts its KL as the base class."""
    names = ("sample", "kl", "posterior", "prior")
    return all(getattr(type(block), name) is getattr(PosteriorBlock, name) for name in names)


class _NativeAdam:
    """The compiled pass in place of `torch.optim.Adam`, in whose state it keeps the moments."""

    def __init__(self, optimizer: Adam) -> None:
        self.optimizer = optimizer
        self.group_of = {p: group for group in optimizer.param_groups for p in group["params"]}
        self.blocks: dict[PosteriorBlock, native.AdamBlock] = {}
        self._counts: list[Tensor] = []

    def finish(self) -> None:
        """Count the step of all blocks that were stepped, at once: each call costs the same."""
        if self._counts:
            torch._foreach_add_(self._counts, 1)
            self._counts.clear()

    def step(self, drawn: _Drawn, kl_factor: float) -> bool:
        """Whether the block could be stepped, and has been."""
        block = drawn.block
        groups = [self.group_of.get(p) for p in (block.mean, block.rho)]
        elsewhere = block.mean.grad is not None or block.rho.grad is not None
        if drawn.divergence is None or elsewhere or not _alike(groups):
            self.blocks.pop(block, None)  # what it knows of the last step will be out of date
            return False
        compiled = self.blocks.get(block)
        # Avalanche starts an optimiser afresh by emptying its state.
        fresh = not all(self.optimizer.state[p] for p in (block.mean, block.rho))
        if compiled is None or fresh or not compiled.is_of(block.mean, block.rho):
            mean, rho = ((p.detach(), self._moments(p)) for p in (block.mean, block.rho))
            prior = block.prior_mean, block.prior_scale
            compiled = native.AdamBlock(mean, rho, prior, drawn.divergence, block.stretch)
            self.blocks[block] = compiled
        counts = [self.optimizer.state[p]["step"] for p in (block.mean, block.rho)]
        self._counts += counts
        group, rho_group = groups
        assert group is not None
        assert rho_group is not None
        assert drawn.gradient is not None
        compiled.step(
            (int(counts[0]) + 1, int(counts[1]) + 1),  # means may have been trained before
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
