"""The gradient of the variational objective without autograd through posterior and KL.

Autograd computes the gradient in the drawn weights (`vcl_radial.nn.drawn_layer`), and the families
have the gradient of their KL in closed form (`Posterior.kl_gradients`). On a CPU with Adam, one
compiled pass computes gradient, step and the next scale (`vcl_radial.nn.compiled_adam`); otherwise
the gradients are added to `.grad`.
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
from vcl_radial.nn.drawn_layer import DrawnBlock, DrawnLayer, joint
from vcl_radial.nn.weights import VariationalWeights

_Entry: TypeAlias = tuple[DrawnBlock, native.Gradient, tuple[float, float]]
"""A block, the gradient of its NLL, and the factors of the KL for means and scales."""


class ClosedFormGradients:
    """Draw the weights of a network's layers, in place of the layers, until `release`.

    Between the `zero_grad` and the `step` of an optimiser, make any number of forward and backward
    passes with a loss *without* the KL. Then `before_step` adds the KL's gradient, and the
    optimiser's `step` updates the remaining parameters.

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
        """Whether there are blocks, and all their KLs have a gradient in closed form.

        A derived class may compute differently, so a family must define `kl_gradients` itself and
        not inherit it, and layers and blocks must draw and compute their KL as the base classes do.
        """
        layers = [m for m in network.modules() if isinstance(m, VariationalWeights)]
        if not all(m.all_in_blocks for m in layers):
            return False
        blocks = [m for m in network.modules() if isinstance(m, PosteriorBlock)]
        return bool(blocks) and all(
            _computes_as_base(block)
            and "kl_gradients" in vars(block.family)
            and block.family.kl_gradients(block.prior_family, []) is not None
            for block in blocks
        )

    def release(self) -> None:
        """Let the layers draw their weights again."""
        for layer in self._layers:
            layer.weights.sampler = None

    def before_step(
        self,
        optimizer: Optimizer,
        with_kl: Iterable[PosteriorBlock],
        kl_factor: float,
        free_means: Iterable[PosteriorBlock] = (),
    ) -> bool:
        """Take the compiled step where possible; otherwise add the gradients to `.grad`.

        Args:
            optimizer: the optimiser whose step follows; the same one in every step.
            with_kl: blocks whose KL is in the objective, drawn or not.
            kl_factor: factor of the KL, in nats per point: KL weight / N.
            free_means: blocks whose KL has no gradient in the means.

        Returns:
            Whether the optimiser's `step` still has parameters to update.
        """
        kl_blocks, free_blocks = set(with_kl), set(free_means)
        native_adam = self._native_adam(optimizer)
        in_torch = []
        for layer in self._layers:
            for drawn_block, gradient in zip(layer.blocks, layer.gradients(), strict=True):
                factor = kl_factor if drawn_block.block in kl_blocks else 0.0
                nll_gradient = gradient or (_no_gradient(drawn_block.block) if factor else None)
                if nll_gradient is None:
                    continue
                factors = (0.0 if drawn_block.block in free_blocks else factor, factor)
                if native_adam is None or not native_adam.step(drawn_block, nll_gradient, factors):
                    in_torch.append((drawn_block, nll_gradient, factors))
        if native_adam is not None:
            native_adam.finish()
        _fill_gradients(in_torch)
        for drawn_block, _, _ in in_torch:
            drawn_block.forget_scale()
        leaves = [leaf for layer in self._layers for leaf in layer.forget()]
        # Their memory is reused; PyTorch then raises in a later backward pass through them.
        torch.autograd.graph.increment_version(leaves)
        return bool(in_torch) or _would_step(optimizer)

    def _native_adam(self, optimizer: Optimizer) -> CompiledAdam | None:
        if self._optimizer is not optimizer:
            self._optimizer = optimizer
            self._compiled = CompiledAdam(optimizer) if type(optimizer) is Adam else None
        return self._compiled


def _no_gradient(block: PosteriorBlock) -> native.Gradient:
    """The zero gradient of a block that was not drawn."""
    zero = torch.zeros_like(block.mean)
    return native.Gradient(zero, None, zero, None)


def _fill_gradients(entries: list[_Entry]) -> None:
    """Add the gradient of NLL and KL to `.grad` of mean and rho.

    `.grad` may already hold the gradient of another term of the loss.
    """
    families: dict[Any, list[_Entry]] = {}
    for entry in entries:
        block = entry[0].block
        families.setdefault((block.family, block.prior_family), []).append(entry)
    for (family, prior_family), entries_of_family in families.items():
        blocks = [drawn_block.block for drawn_block, _, _ in entries_of_family]
        pairs = [
            (
                _stretch(b, (b.mean.detach() - b.prior_mean).div_(b.prior_scale)),
                d.scale / b.prior_scale,
            )
            for (d, _, _), b in zip(entries_of_family, blocks, strict=True)
        ]
        kl_gradients = family.kl_gradients(prior_family, pairs)
        for (_, gradient, factors), block, (kl_a, kl_s) in zip(
            entries_of_family, blocks, kl_gradients, strict=True
        ):
            grad_mean, grad_scale = joint(gradient)
            by_mean, by_scale = (factor / block.prior_scale for factor in factors)
            _add_grad(block.mean, _stretch(block, kl_a.mul_(by_mean)).add_(grad_mean))
            _add_grad(block.rho, kl_s.mul_(by_scale).add_(grad_scale).mul_(block.rho.sigmoid()))


def _stretch(block: PosteriorBlock, along_means: Tensor) -> Tensor:
    """Multiply by the stretch of the block's KL, if it has one; in place."""
    return along_means if block.stretch is None else along_means.mul_(block.stretch)


def _add_grad(parameter: nn.Parameter, grad: Tensor) -> None:
    """Add to `.grad` unless the parameter is frozen: an optimiser would update it."""
    if parameter.requires_grad:
        grad = grad.to(parameter.dtype)
        parameter.grad = grad if parameter.grad is None else parameter.grad + grad


def _computes_as_base(block: PosteriorBlock) -> bool:
    """Whether a block draws and computes its KL as the base class does."""
    names = ("sample", "kl", "posterior", "prior")
    return (block.carried or block.first_prior is None) and all(
        getattr(type(block), name) is getattr(PosteriorBlock, name) for name in names
    )


def _would_step(optimizer: Optimizer) -> bool:
    """Whether an optimiser's step would change a parameter or call a hook."""
    hooks = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    return (
        "step" in vars(optimizer)  # as PyTorch's schedulers put it there
        or any(getattr(optimizer, name, True) for name in hooks)
        or any(p.grad is not None for group in optimizer.param_groups for p in group["params"])
    )
