"""The approximate posterior over one layer's weights, and its prior."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, cast

import torch
from torch import Tensor, nn

from vcl_radial.config.outside import is_named
from vcl_radial.errors import UserError, bad_value
from vcl_radial.nn.blocks import PosteriorBlock, inverse_softplus
from vcl_radial.nn.grouping import Layer, grouping
from vcl_radial.nn.low_rank import LowRankBlock
from vcl_radial.nn.states import ModuleWithKind
from vcl_radial.posteriors import Posterior, Prior, family
from vcl_radial.posteriors.correlated import Correlated
from vcl_radial.posteriors.families import name_of
from vcl_radial.posteriors.priors import FIRST_PRIORS, ScaleMixture, own_prior

BY_SIZE = "1/sqrt(D)"
"""The `prior_scale` that follows from a layer's number of parameters."""


@dataclass(frozen=True)
class PosteriorSettings:
    """A variational family with its grouping, start and first prior.

    Attributes:
        family: a name of `vcl_radial.posteriors.families()`, a class derived from `Posterior`, or
            such a class by "package.module:Class".
        grouping: the weights that share a radius, or a factor of a low-rank family; one of
            `family.groupings`.
        initial_rho: initial rho; the scale starts at sigma = softplus(initial_rho), as in the
            papers.
        initial_noise: initial standard deviation tau of one weight's noise; it overrides
            `initial_rho`. A Gaussian then starts at sigma = tau and a radial posterior at
            sigma = tau sqrt(D), so that both start with equal functional noise.
        prior_scale: standard deviation of the first prior N(0, prior_scale^2 I); "1/sqrt(D)" for
            that of the layer's number of parameters D (Farquhar, Osborne and Gal 2020, section
            5.1). `vcl_radial.nn.first_prior.set_prior_scales` sets one for each layer.
        prior: the first prior: "gaussian", "scale-mixture" of N(0, prior_scale^2) and a narrower
            Gaussian, or a class of a user's own, see `vcl_radial.posteriors.priors`.
        mixture_share: share of the wider Gaussian in the mixture.
        mixture_scale: standard deviation of the narrower one.
        rank: R of a family with a factor, at most D in a group of D weights; others ignore it.
    """

    family: str | type[Posterior] = "radial"
    grouping: str = "layer"
    initial_rho: float = -6.0
    initial_noise: float | None = None
    prior_scale: float | Literal["1/sqrt(D)"] = 1.0
    rank: int = 8
    prior: str | Callable[[float], Prior] = "gaussian"
    mixture_share: float = 0.5
    mixture_scale: float = 0.0025

    def __post_init__(self) -> None:
        """Check values that no tensor operation would reject."""
        cls = family(self.family)
        if self.grouping not in cls.groupings:
            raise bad_value(
                "grouping",
                self.grouping,
                f"is not for posterior = {name_of(cls)!r}: choose from {', '.join(cls.groupings)}",
            )
        if self.initial_noise is not None and not self.initial_noise > 0:
            raise bad_value("initial_noise", self.initial_noise, "must be above 0")
        scale = self.prior_scale
        if scale != BY_SIZE and (isinstance(scale, str | Sequence) or not scale > 0):
            raise bad_value("prior_scale", scale, f"must be a number above 0, or {BY_SIZE!r}")
        if not 0 <= self.mixture_share <= 1:
            raise bad_value("mixture_share", self.mixture_share, "must be from 0 to 1")
        if not self.mixture_scale > 0:
            raise bad_value("mixture_scale", self.mixture_scale, "must be above 0")
        if isinstance(self.prior, str) and not (self.prior in FIRST_PRIORS or is_named(self.prior)):
            choices = f"choose from {', '.join(FIRST_PRIORS)}, or give a class"
            raise bad_value("prior", self.prior, f"is not known: {choices}")
        if self.rank < 1:
            raise bad_value("rank", self.rank, "must be at least 1")

    @property
    def kind(self) -> str:
        """Family, grouping and rank, which the shapes of weights do not always show."""
        cls = family(self.family)
        rank = f", rank = {self.rank}" if issubclass(cls, Correlated) else ""
        return f"posterior = {name_of(cls)!r}, grouping = {self.grouping!r}{rank}"

    def make_weights(self, weight: Tensor, bias: Tensor | None) -> VariationalWeights:
        """Make the posterior over a layer's weights with these means."""
        if self.prior_scale != BY_SIZE:
            return VariationalWeights(weight, bias, self)
        D = weight.numel() + (0 if bias is None else bias.numel())
        return VariationalWeights(weight, bias, replace(self, prior_scale=D**-0.5))

    def make_block(self, mean: Tensor) -> PosteriorBlock:
        """Make the posterior over groups `[groups, D]` with these means."""
        cls, D = family(self.family), mean.shape[-1]
        assert not isinstance(self.prior_scale, str)  # `make_weights` knows the layer's size
        options = mean, cls, self.rho(D), self.prior_scale
        if issubclass(cls, Correlated):
            block: PosteriorBlock = LowRankBlock(*options, min(self.rank, D))
        else:
            block = PosteriorBlock(*options)
        block.first_prior = self.first_prior()
        return block

    def first_prior(self) -> Prior | None:
        """The first prior of the layer; None for a Gaussian."""
        assert not isinstance(self.prior_scale, str)
        if self.prior == "gaussian":
            return None
        if self.prior == "scale-mixture":
            return ScaleMixture(self.prior_scale, self.mixture_share, self.mixture_scale)
        return own_prior(self.prior, self.prior_scale)

    def rho(self, group_size: int) -> float:
        """The initial rho for a group of `group_size` weights."""
        if self.initial_noise is None:
            return self.initial_rho
        return inverse_softplus(
            family(self.family).scale_for_weight_noise(self.initial_noise, group_size)
        )


class LayerSettings(Protocol):
    """The settings of any kind of `VariationalWeights`, which make the posterior of a layer."""

    def make_weights(self, weight: Tensor, bias: Tensor | None) -> VariationalWeights:
        """Make the posterior of a layer's weight `[out, ...]` and bias `[out]` with these means."""
        ...


@contextmanager
def drawn_by(
    layers: Sequence[VariationalWeights], make: Callable[[VariationalWeights], Callable[[], Layer]]
) -> Iterator[None]:
    """Inside, replace the draws of layers by samplers, where gradients are enabled."""
    samplers = [layer.sampler for layer in layers]
    for layer in layers:
        layer.sampler = make(layer)
    try:
        yield
    finally:
        for layer, sampler in zip(layers, samplers, strict=True):
            layer.sampler = sampler


@contextmanager
def at_means(network: nn.Module) -> Iterator[None]:
    """Inside, let layers use their means instead of draws, where gradients are enabled."""
    layers = [m for m in network.modules() if isinstance(m, VariationalWeights)]
    with drawn_by(layers, lambda layer: layer.mean):
        yield


@contextmanager
def held_scales(network: nn.Module) -> Iterator[None]:
    """Inside, let draws without gradient share their scales; the weights must not change."""
    blocks = [module for module in network.modules() if isinstance(module, PosteriorBlock)]
    for block in blocks:
        block.hold_scale(True)
    try:
        yield
    finally:
        for block in blocks:
            block.hold_scale(False)


_BY_BLOCKS: Final = ("sample", "split", "kl", "consolidate")
"""The methods of a layer that work block by block."""


class VariationalWeights(ModuleWithKind):
    """q(w) and p(w) over the weight and bias of one layer.

    Args:
        weight: the initial means of the weight, `[out, ...]`.
        bias: the initial means of the bias, `[out]`, or None.
        settings: the family, its grouping, its initial scale and the first prior.
    """

    sampler: Callable[[], Layer] | None = None
    """If set, it draws the weights in place of the posterior when gradients are enabled."""

    def __init__(self, weight: Tensor, bias: Tensor | None, settings: PosteriorSettings) -> None:
        super().__init__()
        self.settings: LayerSettings = settings
        self.grouping = grouping(settings.grouping)
        self.shape = weight.shape
        self.blocks = nn.ModuleList(
            settings.make_block(block) for block in self.grouping.join(weight, bias)
        )

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy, without the sampler: a copy draws from its posterior."""
        return {name: value for name, value in vars(self).items() if name != "sampler"}

    @property
    def kind(self) -> str:
        """The kind that the settings name, or the class of the user's own settings."""
        return str(getattr(self.settings, "kind", type(self.settings).__qualname__))

    @property
    def all_in_blocks(self) -> bool:
        """Whether `posterior_blocks` hold all weights, and the KL is the sum of the blocks' KLs.

        A derived class that overrides the draws or the KL makes it false.
        """
        kind, base = type(self), VariationalWeights
        return all(getattr(kind, name) is getattr(base, name) for name in _BY_BLOCKS)

    @property
    def uncorrelated(self) -> bool:
        """Whether one standard deviation per weight of the blocks describes all of the noise."""
        blocks = self.posterior_blocks()
        return self.all_in_blocks and all(block.family.uncorrelated for block in blocks)

    def posterior_blocks(self) -> list[PosteriorBlock]:
        """The blocks of groups of the layer; empty if a derived class makes none."""
        return list(cast(Iterable[PosteriorBlock], self._modules.get("blocks", ())))

    def sample(self) -> Layer:
        """Draw w ~ q(w), reparameterised: the weight `[out, ...]` and the bias `[out]` or None."""
        if self.sampler is not None and torch.is_grad_enabled():
            return self.sampler()
        return self.split([block.sample() for block in self.posterior_blocks()])

    def split(self, blocks: Sequence[Tensor]) -> Layer:
        """Weight and bias from blocks `[groups, D]`."""
        return self.grouping.split(blocks, self.shape)

    def mean(self) -> Layer:
        """The posterior means: the weight `[out, ...]` and the bias `[out]` or None."""
        return self.grouping.split([block.mean for block in self.posterior_blocks()], self.shape)

    def kl(self) -> Tensor:
        """KL(q || p) summed over all weights, a scalar in nats."""
        return torch.stack([block.kl() for block in self.posterior_blocks()]).sum()

    def consolidate(self) -> None:
        """Make the posterior the prior: p(w) <- q(w)."""
        for block in self.posterior_blocks():
            block.consolidate()

    @torch.no_grad()
    def set_prior_scale(self, scale: float) -> None:
        """Set the scale of the prior, before the first task.

        Raises:
            UserError: the layer's prior has other parameters.
        """
        if not isinstance(self.settings, PosteriorSettings):
            raise UserError(f"cannot be set for {self.kind}", at="prior_scale")
        self.settings = replace(self.settings, prior_scale=scale)
        for block in self.posterior_blocks():
            block.prior_scale.fill_(scale)
            block.first_prior = self.settings.first_prior()

    def restart_noise(self) -> None:
        """Reset all noise to its size before the first task; the means do not change."""
        for block in self.posterior_blocks():
            block.restart_noise()
