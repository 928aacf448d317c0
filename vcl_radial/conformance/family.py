"""Checks of a variational family: is it a distribution, and are its divergences correct?

All checks are in float64, for groups of a few sizes, at locations and scales from a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from vcl_radial.conformance.verdict import Fault, NotApplicable
from vcl_radial.posteriors import Gaussian, Posterior

GROUPS = 1, 2, 10
"""Group sizes: numbers of weights that are drawn together."""

DRAWS = 20_000
ERRORS = 5.0
ROUNDING = 1e-6

Look = Callable[[type[Posterior]], str]


def noise(family: type[Posterior]) -> str:
    """Check that draws are mean + scale * noise, and the noise has mean 0 and the stated spread."""
    for q in _examples(family):
        draw, repeated = (q.noise(3, _generator()) for _ in range(2))
        shape = (3, *q.mean.shape)
        if draw.shape != shape or draw.dtype != q.mean.dtype:
            raise Fault(
                f"noise(3) of {_group(q)} has shape {list(draw.shape)} in {draw.dtype}: "
                f"{list(shape)} in the dtype of the mean, {q.mean.dtype}, is needed"
            )
        if not draw.isfinite().all():
            raise Fault(f"noise() of {_group(q)} holds nan or inf")
        if not torch.equal(draw, repeated):
            raise Fault("noise() differs with generators of one seed: draw from the generator")
        if not torch.equal(draw, _standard(q).noise(3, _generator())):
            raise Fault("noise() depends on mean or scale: it is standard, sample() scales it")
        D = q.group_size
        z = q.noise(DRAWS, _generator()) * family.scale_for_weight_noise(1.0, D)
        centre, spread = _mean(z.mean((1, 2))), _mean(z.square().mean((1, 2)))
        if abs(centre[0]) > ERRORS * centre[1] + ROUNDING:
            raise Fault(f"noise() of {_group(q)} has mean {centre[0]:.3g}: it must be 0")
        if abs(spread[0] - 1) > ERRORS * spread[1] + ROUNDING:
            raise Fault(
                f"at the scale of scale_for_weight_noise(1, {D}) the noise of one weight has "
                f"standard deviation {math.sqrt(spread[0]):.4g}"
            )
    return "has mean 0 and the standard deviation of scale_for_weight_noise, for any group size"


def density(family: type[Posterior]) -> str:
    """Check that the density integrates to 1 over one weight and two, and scales as a density."""
    for D, integral in ((1, _over_line), (2, _over_plane)):
        total = integral(family(torch.zeros(D).double(), torch.ones(D).double()))
        if abs(total - 1) > 1e-3:
            raise Fault(f"exp(log_prob) of a group of {D} integrates to {total:.6g}, not to 1")
    for q in _examples(family):
        w = q.sample(5, _generator())
        expected = _standard(q).log_prob((w - q.mean) / q.scale) - q.scale.log().sum(-1)
        log_prob = q.log_prob(w)
        if log_prob.shape != expected.shape:
            raise Fault(f"log_prob() sums over the last axis alone: shape {list(log_prob.shape)}")
        if not torch.allclose(log_prob, expected, rtol=1e-6, atol=1e-6):
            raise Fault("log_prob(w) must be log_prob((w - mean) / scale) minus sum log scale")
    return "integrates to 1 for groups of one weight and of two"


def entropy(family: type[Posterior]) -> str:
    """Check that the entropy is the mean of -log_prob over draws."""
    for q in _examples(family):
        mean, error = _mean(-q.log_prob(q.sample(DRAWS, _generator())))
        exact = q.entropy()
        differs = (mean - exact).abs() > ERRORS * error + ROUNDING * (1 + exact.abs())
        if differs.any():
            k = int(differs.nonzero()[0])
            raise Fault(
                f"entropy() of {_group(q)} is {float(exact[k]):.6g} nats, but -log_prob of its "
                f"draws is {float(mean[k]):.6g} +- {float(error[k]):.2g} on average"
            )
    return "is the mean of -log_prob over draws"


def divergence(family: type[Posterior]) -> str:
    """Check that KL(q || q) is 0 and minimal, and that closed forms agree with draws."""
    closed, to_itself = [], False
    for q in _examples(family):
        for prior in (_near(q), _first_prior(q)):
            kl = q.closed_kl(prior)
            if kl is None:
                continue
            closed.append(_name(prior))
            draws = q.sample(DRAWS, _generator())
            mean, error = _mean(q.log_prob(draws) - prior.log_prob(draws))
            # A closed form may be exact only to second order, like the radial family's.
            differs = (kl - mean).abs() > ERRORS * error + 0.02 * (1 + mean.abs())
            if differs.any():
                k = int(differs.nonzero()[0])
                raise Fault(
                    f"closed_kl() of {_group(q)} to a {_name(prior)} is {float(kl[k]):.6g} nats, "
                    f"but draws give {float(mean[k]):.6g} +- {float(error[k]):.2g}"
                )
        to_itself = _zero_at_itself(q)
    if not closed:
        return "has no closed form: it is estimated from draws"
    at_prior = "is 0 and minimal at the prior" if to_itself else "to its own family it is estimated"
    return f"{at_prior}; closed forms to {' and '.join(dict.fromkeys(closed))}"


def gradients(family: type[Posterior]) -> str:
    """Check that `kl_gradients` are the gradients of `kl` by autograd."""
    priors = []
    for q in _examples(family):
        for prior in (_near(q), _first_prior(q)):
            a = ((q.mean - prior.mean) / prior.scale).detach().requires_grad_()
            s = (q.scale / prior.scale).detach().requires_grad_()
            pairs = [(a.detach().clone(), s.detach().clone())]
            gradients = family.kl_gradients(type(prior), pairs)
            if gradients is None:
                continue
            priors.append(_name(prior))
            value = family(a, s).kl(_standard(prior)).sum()
            expected = torch.autograd.grad(value, (a, s))
            for name, gradient, true in zip(("da", "ds"), gradients[0], expected, strict=True):
                if not torch.allclose(gradient, true, rtol=1e-4, atol=1e-6):
                    raise Fault(
                        f"kl_gradients() to a {_name(prior)}: its dKL/{name} differs from "
                        f"autograd's in kl() by up to {float((gradient - true).abs().max()):.3g}"
                    )
    if not priors:
        raise NotApplicable("kl_gradients() is not defined: autograd differentiates kl()")
    return f"of the KL to {' and '.join(dict.fromkeys(priors))} equal autograd's"


LOOKS: dict[str, Look] = {
    "posterior's noise": noise,
    "posterior's density": density,
    "posterior's entropy": entropy,
    "posterior's KL": divergence,
    "posterior's gradients": gradients,
}


def _zero_at_itself(q: Posterior) -> bool:
    """Whether the KL to a prior of the same family has a closed form; it must be 0 and minimal."""
    prior = q.to_prior()
    if prior.mean.requires_grad or prior.mean.data_ptr() == q.mean.data_ptr():
        raise Fault("to_prior() does not copy: clone mean and scale")
    mean, scale = (t.detach().clone().requires_grad_() for t in (q.mean, q.scale))
    value = type(q)(mean, scale).closed_kl(prior)
    if value is None:
        return False
    off = float(value.detach().abs().max())
    if off > 1e-6 * (1 + q.group_size):
        raise Fault(f"KL(q || q) of {_group(q)} is {off:.3g} nats, not 0")
    slopes = torch.autograd.grad(value.sum(), (mean, scale), materialize_grads=True)
    steepest = max(float((slope * q.scale).abs().max()) for slope in slopes)
    if not steepest < 1e-6:
        raise Fault(
            f"KL(q || p) of {_group(q)} is not minimal at p = q: its slope there is {steepest:.3g} "
            "nats per scale in mean or scale"
        )
    return True


def _examples(family: type[Posterior]) -> Iterator[Posterior]:
    """Yield a posterior of two groups for each size."""
    for D in GROUPS:
        mean = torch.randn(2, D, generator=_generator(), dtype=torch.float64)
        yield family(mean, 0.3 + torch.rand(2, D, generator=_generator(), dtype=torch.float64))


def _standard(q: Posterior) -> Posterior:
    """The same family at location 0 and scale 1."""
    return type(q)(torch.zeros_like(q.mean), torch.ones_like(q.scale))


def _near(q: Posterior) -> Posterior:
    """A prior of the same family with other means and scales."""
    return type(q)(q.mean + 0.5 * q.scale, 1.3 * q.scale)


def _first_prior(q: Posterior) -> Posterior:
    return Gaussian(torch.zeros_like(q.mean), torch.ones_like(q.scale))


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def _mean(values: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard error over the first axis."""
    return values.mean(0), values.std(0) / math.sqrt(len(values))


def _over_line(q: Posterior) -> float:
    """The integral of a density over the line: the midpoint rule in phi, w = tan phi."""
    phi = (torch.arange(20_000).double() + 0.5) / 20_000 * math.pi - math.pi / 2
    return (
        float((q.log_prob(phi.tan()[:, None]).exp() / phi.cos().square()).sum())
        * math.pi
        / len(phi)
    )


def _over_plane(q: Posterior) -> float:
    """The integral of a density over the plane in polar coordinates, r = tan phi."""
    n, directions = 4000, 256
    phi = (torch.arange(n).double() + 0.5) / n * math.pi / 2
    angle = (torch.arange(directions).double() + 0.5) / directions * 2 * math.pi
    r = phi.tan()[:, None]
    w = torch.stack([r * angle.cos(), r * angle.sin()], dim=-1)
    area = r / phi.cos().square()[:, None]
    return (
        float((q.log_prob(w).exp() * area).sum()) * (math.pi / 2 / n) * (2 * math.pi / directions)
    )


def _group(q: Posterior) -> str:
    return f"a group of {q.group_size}"


def _name(prior: Posterior) -> str:
    return type(prior).__name__
