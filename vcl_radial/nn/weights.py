"""The approximate posterior over one layer's weights, and the prior that it is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import torch
from torch import Tensor, nn

from vcl_radial.errors import bad_value
from vcl_radial.nn.blocks import PosteriorBlock, inverse_softplus
from vcl_radial.nn.grouping import Layer, grouping
from vcl_radial.nn.low_rank import LowRankBlock
from vcl_radial.nn.states import OfAKind
from vcl_radial.posteriors import Posterior, family
from vcl_radial.posteriors.correlated import Correlated
from vcl_radial.posteriors.families import name_of


@dataclass(frozen=True)
class PosteriorSettings:
    """A variational family, its grouping, where it starts and the first prior.

    Attributes:
        family: a name of `vcl_radial.posteriors.families()`, a class derived from `Posterior`, or
            such a class by "package.module:Class".
        grouping: which weights share a radius, or a factor of a low-rank family; one of
            `family.groupings`.
        initial_rho: the scale starts at sigma = softplus(initial_rho), as in the papers.
        initial_noise: where given, it takes the place of `initial_rho`: the standard deviation
            tau of one weight's noise. A Gaussian then starts at sigma = tau and a radial
            posterior at sigma = tau sqrt(D), so that both start with equal functional noise.
        prior_scale: the first prior is N(0, prior_scale^2 I).
        rank: R of a family with a factor, at most D in a group of D weights; others have none.
    """

    family: str | type[Posterior] = "radial"
    grouping: str = "layer"
    initial_rho: float = -6.0
    initial_noise: float | None = None
    prior_scale: float = 1.0
    rank: int = 8

    def __post_init__(self) -> None:
        """Check the values that no tensor operation would refuse."""
        cls = family(self.family)
        if self.grouping not in cls.groupings:
            raise bad_value(
                "grouping",
                self.grouping,
                f"is not for posterior = {name_of(cls)!r}: choose from {', '.join(cls.groupings)}",
            )
        if self.initial_noise is not None and not self.initial_noise > 0:
            raise bad_value("initial_noise", self.initial_noise, "must be above 0")
        if not self.prior_scale > 0:
            raise bad_value("prior_scale", self.prior_scale, "must be above 0")
        if self.rank < 1:
            raise bad_value("rank", self.rank, "must be at least 1")

    @property
    def kind(self) -> str:
        """Family, grouping and rank, which are not seen in the shapes of all weights."""
        cls = family(self.family)
        rank = f", rank = {self.rank}" if issubclass(cls, Correlated) else ""
        return f"posterior = {name_of(cls)!r}, grouping = {self.grouping!r}{rank}"

    def make_weights(self, weight: Tensor, bias: Tensor | None) -> VariationalWeights:
        """The posterior over a layer's weights with these means."""
        return VariationalWeights(weight, bias, self)

    def make_block(self, mean: Tensor) -> PosteriorBlock:
        """The posterior over groups `[groups, D]` with these means."""
        cls, D = family(self.family), mean.shape[-1]
        start = mean, cls, self.rho(D), self.prior_scale
        if issubclass(cls, Correlated):
            return LowRankBlock(*start, min(self.rank, D))
        return PosteriorBlock(*start)

    def rho(self, group_size: int) -> float:
        """The initial rho of a group of that many weights."""
        if self.initial_noise is None:
            return self.initial_rho
        return inverse_softplus(
            family(self.family).scale_for_weight_noise(self.initial_noise, group_size)
        )


class LayerSettings(Protocol):
    """What makes the posterior of a layer: the settings of any kind of `VariationalWeights`."""

    def make_weights(self, weight: Tensor, bias: Tensor | None) -> VariationalWeights:
        """The posterior over a layer's weight `[out, ...]` and bias `[out]` with these means."""
        ...


@contextmanager
def drawn_by(
    layers: Sequence[VariationalWeights], make: Callable[[VariationalWeights], Callable[[], Layer]]
) -> Iterator[None]:
    """Inside, layers take what is made for them in place of draws, where gradients are wanted."""
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
    """Inside, where gradients are wanted, layers use their means in place of draws."""
    layers = [m for m in network.modules() if isinstance(m, VariationalWeights)]
    with drawn_by(layers, lambda layer: layer.mean):
        yield


@contextmanager
def held_scales(network: nn.Module) -> Iterator[None]:
    """Inside, where nobody changes the weights, draws without gradient share their scales."""
    blocks = [module for module in network.modules() if isinstance(module, PosteriorBlock)]
    for block in blocks:
        block.hold_scale(True)
    try:
        yield
    finally:
        for block in blocks:
            block.hold_scale(False)


_BY_BLOCKS: Final = ("sample", "split", "kl", "consolidate")
"""What a layer does block by block."""


class VariationalWeights(OfAKind):
    """q(w) and p(w) over the weight and bias of one layer.

    Args:
        weight: the initial means of the weight, `[out, ...]`.
        bias: the initial means of the bias, `[out]`, or None.
        settings: the family, its grouping, its initial scale and the first prior.
    """

    sampler: Callable[[], Layer] | None = None
    """Where set, it draws in place of the posterior when gradients are wanted."""

    def __init__(self, weight: Tensor, bias: Tensor | None, settings: PosteriorSettings) -> None:
        super().__init__()
        self.settings: LayerSettings = settings
        self.grouping = grouping(settings.grouping)
        self.shape = weight.shape
        self.blocks = nn.ModuleList(
            settings.make_block(block) for block in self.grouping.join(weight, bias)
        )

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: it draws by itself, whoever draws in place of this posterior."""
        return {name: value for name, value in vars(self).items() if name != "sampler"}

    @property
    def kind(self) -> str:
        """What the settings say, or their class where they are the user's own."""
        return str(getattr(self.settings, "kind", type(self.settings).__qualname__))

    @property
    def all_in_blocks(self) -> bool:
        """Whether `posterior_blocks` are all that there is, and the KL is the sum of theirs.

        So it is unless a class that is derived from this one draws, or counts its KL, by itself.
        """
        kind, base = type(self), VariationalWeights
        return all(getattr(kind, name) is getattr(base, name) for name in _BY_BLOCKS)

    @property
    def uncorrelated(self) -> bool:
        """Whether one standard deviation for each weight of the blocks is all of the noise."""
        blocks = self.posterior_blocks()
        return self.all_in_blocks and all(block.family.uncorrelated for block in blocks)

    def posterior_blocks(self) -> list[PosteriorBlock]:
        """The blocks of groups that the layer is made of; none where a derived class makes none."""
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

    def restart_noise(self) -> None:
        """Give all noise the size that it had before the first task; the means stay."""
        for block in self.posterior_blocks():
            block.restart_noise()
