"""The gradient of the variational objective without autograd through posterior and KL.

Autograd goes as far as the weights that were drawn (`vcl_radial.nn.drawn_layer`), and the families
know the gradient of their KL (`Posterior.kl_gradients`). On a CPU, where the optimiser is Adam,
gradient, step and the next scale are one compiled pass (`vcl_radial.nn.compiled_adam`); elsewhere
the gradients go to `.grad`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from vcl_radial import native
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.nn.compiled_adam import CompiledAdam
from vcl_radial.nn.drawn_layer import DrawnBlock, DrawnLayer, whole
from vcl_radial.nn.weights import VariationalWeights

_Entry: TypeAlias = tuple[DrawnBlock, native.Gradient, tuple[float, float]]
"""A block, the gradient of its NLL, and the factors of the KL for means and scales."""


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
        self._layers = [DrawnLayer(layer) for layer in weights]
        self._optimizer: Optimizer | None = None
        self._compiled: CompiledAdam | None = None

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
        self,
        optimizer: Optimizer,
        with_kl: Iterable[PosteriorBlock],
        kl_factor: float,
        free_means: Iterable[PosteriorBlock] = (),
    ) -> bool:
        """Step where the compiled pass can; put gradients into `.grad` where it cannot.

        Args:
            optimizer: whose step follows; the same one in every step.
            with_kl: blocks whose KL is in the objective, drawn or not.
            kl_factor: of the KL, in nats per point: KL weight / N.
            free_means: blocks whose KL has no gradient by the means.

        Returns:
            Whether the optimiser's own `step` has anything left to do.
        """
        counted, free = set(with_kl), set(free_means)
        native_adam = self._native_adam(optimizer)
        in_torch = []
        for layer in self._layers:
            for drawn, gradient in zip(layer.drawn, layer.gradients(), strict=True):
                factor = kl_factor if drawn.block in counted else 0.0
                nll_gradient = gradient or (_no_gradient(drawn.block) if factor else None)
                if nll_gradient is None:
                    continue
                factors = (0.0 if drawn.block in free else factor, factor)
                if native_adam is None or not native_adam.step(drawn, nll_gradient, factors):
                    in_torch.append((drawn, nll_gradient, factors))
        if native_adam is not None:
            native_adam.finish()
        _fill_gradients(in_torch)
        for drawn, _, _ in in_torch:
            drawn.forget_scale()
        over = [leaf for layer in self._layers for leaf in layer.forget()]
        # Whoever still goes back through them gets PyTorch's error: they are drawn into again.
        torch.autograd.graph.increment_version(over)
        return bool(in_torch) or _would_step(optimizer)

    def _native_adam(self, optimizer: Optimizer) -> CompiledAdam | None:
        if self._optimizer is not optimizer:
            self._optimizer = optimizer
            self._compiled = CompiledAdam(optimizer) if type(optimizer) is Adam else None
        return self._compiled


def _no_gradient(block: PosteriorBlock) -> native.Gradient:
    """Of a block that was not drawn."""
    zero = torch.zeros_like(block.mean)
    return native.Gradient(zero, None, zero, None)


def _fill_gradients(entries: list[_Entry]) -> None:
    """Add the gradient of NLL and KL to `.grad` of mean and rho.

    There may be one already, of a term of the loss that was not made of the draws.
    """
    families: dict[Any, list[_Entry]] = {}
    for entry in entries:
        block = entry[0].block
        families.setdefault((block.family, block.prior_family), []).append(entry)
    for (family, prior_family), alike in families.items():
        blocks = [drawn.block for drawn, _, _ in alike]
        pairs = [
            (
                _stretched(b, (b.mean.detach() - b.prior_mean).div_(b.prior_scale)),
                d.scale / b.prior_scale,
            )
            for (d, _, _), b in zip(alike, blocks, strict=True)
        ]
        kl_gradients = family.kl_gradients(prior_family, pairs)
        for (_, gradient, factors), block, (kl_a, kl_s) in zip(
            alike, blocks, kl_gradients, strict=True
        ):
            grad_mean, grad_scale = whole(gradient)
            by_mean, by_scale = (factor / block.prior_scale for factor in factors)
            _add_grad(block.mean, _stretched(block, kl_a.mul_(by_mean)).add_(grad_mean))
            _add_grad(block.rho, kl_s.mul_(by_scale).add_(grad_scale).mul_(block.rho.sigmoid()))


def _stretched(block: PosteriorBlock, along_means: Tensor) -> Tensor:
    """Times the stretch of the block's KL, where it has one; in place."""
    return along_means if block.stretch is None else along_means.mul_(block.stretch)


def _add_grad(parameter: nn.Parameter, grad: Tensor) -> None:
    """Add to `.grad`, but for a frozen parameter: an optimiser would step it."""
    if parameter.requires_grad:
        grad = grad.to(parameter.dtype)
        parameter.grad = grad if parameter.grad is None else parameter.grad + grad


def _as_the_base(block: PosteriorBlock) -> bool:
    """Whether a block, if its class is derived, draws and counts its KL as the base class."""
    names = ("sample", "kl", "posterior", "prior")
    return all(getattr(type(block), name) is getattr(PosteriorBlock, name) for name in names)


def _would_step(optimizer: Optimizer) -> bool:
    """Whether a step of an optimiser changes a parameter, or somebody waits for it."""
    hooks = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    return (
        "step" in vars(optimizer)  # as PyTorch's schedulers put it there
        or any(getattr(optimizer, name, True) for name in hooks)
        or any(p.grad is not None for group in optimizer.param_groups for p in group["params"])
    )
