"""What is wrong with a variational family is found by the check that is there for it."""

import math
import re
import sys

import pytest
import torch

from vcl_radial.conformance import check_family, iter_verdicts, recipe_for
from vcl_radial.conformance.family import LOOKS
from vcl_radial.conformance.streams import SEVERAL_HEADS
from vcl_radial.errors import UserError
from vcl_radial.nn import (
    MLP,
    ClosedFormGradients,
    PosteriorSettings,
    consolidate,
    kl_divergence,
)
from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.nn.convert import to_bayesian
from vcl_radial.posteriors import Gaussian, Posterior, Radial, RadialEq44


class Laplace(Posterior):
    """A family with a closed form to itself, but not to the first prior."""

    @classmethod
    def scale_for_weight_noise(cls, tau, D):
        return tau / math.sqrt(2)

    def noise(self, n, generator=None):
        like = {"dtype": self.mean.dtype, "device": self.mean.device}
        u = torch.rand(n, *self.mean.shape, generator=generator, **like) - 0.5
        return -u.sign() * torch.log1p(-2 * u.abs().clamp(max=0.49999997))

    def log_prob(self, w):
        return -(self._standardise(w).abs() + (2 * self.scale).log()).sum(-1)

    def entropy(self):
        return (1 + (2 * self.scale).log()).sum(-1)

    def closed_kl(self, prior):
        if not isinstance(prior, Laplace):
            return None
        a, s = self._in_units_of(prior)
        return (s * (-a.abs() / s).exp() + a.abs() - s.log() - 1).sum(-1)


class WithGradients(Gaussian):
    @classmethod
    def kl_gradients(cls, prior, pairs):
        return [(a, s - 1 / s) for a, s in pairs]


class NoiseOfAnotherShape(Laplace):
    def noise(self, n, generator=None):
        return super().noise(n, generator).squeeze(-1)


class NoiseIsScaled(Laplace):
    def noise(self, n, generator=None):
        return super().noise(n, generator) * self.scale


class NoiseIsNotSeeded(Laplace):
    def noise(self, n, generator=None):
        return super().noise(n)


class NoiseHasAMean(Laplace):
    def noise(self, n, generator=None):
        return super().noise(n, generator).abs()


class NoiseOfAnotherSpread(Laplace):
    @classmethod
    def scale_for_weight_noise(cls, tau, D):
        return tau


class DensityWithoutItsConstant(Laplace):
    def log_prob(self, w):
        return super().log_prob(w) + 0.01 * w.shape[-1]

    def entropy(self):
        return super().entropy() - 0.01 * self.group_size


class DensityWithoutItsScale(Laplace):
    def log_prob(self, w):
        return super().log_prob(w) + self.scale.log().sum(-1)

    def entropy(self):
        return super().entropy() - self.scale.log().sum(-1)


class AnotherEntropy(Laplace):
    def entropy(self):
        return super().entropy() + 0.1


class AnotherKL(Laplace):
    def closed_kl(self, prior):
        kl = super().closed_kl(prior)
        return None if kl is None else 1.1 * kl


class KLOffItsMinimum(Laplace):
    """By so little that draws would not show it."""

    def closed_kl(self, prior):
        kl = super().closed_kl(prior)
        return None if kl is None else kl + 0.003 * (self.scale / prior.scale).log().sum(-1)


class KLIsNotZero(Laplace):
    def closed_kl(self, prior):
        kl = super().closed_kl(prior)
        return None if kl is None else kl + 1e-3


class KeepsThePosteriorAsPrior(Laplace):
    def to_prior(self):
        return self


class AnotherGradient(WithGradients):
    @classmethod
    def kl_gradients(cls, prior, pairs):
        return [(a, 2 * s) for a, s in super().kl_gradients(prior, pairs)]


class Raises(Laplace):
    def log_prob(self, w):
        return w.nowhere


FAULTS = {
    NoiseOfAnotherShape: ("noise", r"has shape \[3, 2\] .*\[3, 2, 1\]"),
    NoiseIsScaled: ("noise", "depends on mean or scale"),
    NoiseIsNotSeeded: ("noise", "draw from the generator"),
    NoiseHasAMean: ("noise", r"has mean [\d.]+: it must be 0"),
    NoiseOfAnotherSpread: ("noise", r"has standard deviation 1\.4\d+"),
    DensityWithoutItsConstant: ("density", "integrates to 1.01005, not to 1"),
    DensityWithoutItsScale: ("density", "minus sum log scale"),
    AnotherEntropy: ("entropy", r"is [\d.-]+ nats, but -log_prob of its draws"),
    AnotherKL: ("KL", r"to a AnotherKL is [\d.]+ nats, but draws give [\d.]+ \+- "),
    KLOffItsMinimum: ("KL", "is not minimal at p = q: its slope there is 0.003"),
    KLIsNotZero: ("KL", r"KL\(q \|\| q\) of a group of 1 is 0.001 nats, not 0"),
    KeepsThePosteriorAsPrior: ("KL", "does not copy"),
    AnotherGradient: ("gradients", "its dKL/ds differs from autograd's"),
    # The paper's prior term without the Jacobian.
    RadialEq44: ("KL", r"closed_kl\(\) of a group of 2 to a RadialEq44"),
    Raises: ("density", r"AttributeError.*\(test_family_checks.py, line \d+, in log_prob\)"),
}


def outcomes(family):
    return {v.name: v for v in check_family(family)}


@pytest.mark.parametrize("family", [Gaussian, Radial, Laplace, WithGradients])
def test_a_family_that_is_in_order_passes_every_check(family):
    verdicts = outcomes(family)
    assert [v for v in verdicts.values() if v.outcome == "fault"] == []
    known = {name for name, v in verdicts.items() if v.outcome == "ok"}
    assert known >= set(LOOKS) - {"posterior's gradients"}
    assert ("posterior's gradients" in known) == (family is not Laplace)


@pytest.mark.parametrize("family", FAULTS, ids=lambda family: family.__name__)
def test_a_fault_of_a_family_is_found_by_its_own_check_and_named(family):
    check_of_it, message = FAULTS[family]
    verdict = outcomes(family)[f"posterior's {check_of_it}"]
    assert verdict.outcome == "fault", verdict
    assert re.search(message, verdict.message), verdict


def test_every_check_of_a_family_can_fail():
    assert {f"posterior's {name}" for name, _ in FAULTS.values()} == set(LOOKS)


def test_drawing_for_the_checks_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    outcomes(Laplace)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.fixture
def own_posterior(tmp_path, monkeypatch):
    text = "from test_family_checks import Laplace\n\n\nclass Own(Laplace):\n    pass\n"
    (tmp_path / "own_posteriors.py").write_text(text + "\n\nclass Part:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_posteriors:Own"
    sys.modules.pop("own_posteriors", None)


def test_a_posterior_of_ones_own_is_checked_and_carried_by_vcl(own_posterior):
    recipe = recipe_for(own_posterior)
    assert (recipe.strategy, recipe.posterior) == ("vcl", own_posterior)
    verdicts = list(iter_verdicts(recipe, [SEVERAL_HEADS]))
    assert [v for v in verdicts if v.outcome == "fault"] == []
    assert [v.name for v in verdicts[: len(LOOKS)]] == list(LOOKS)
    (verdict,) = [v for v in verdicts if v.name == "consolidates"]
    assert "is random" in verdict.message  # the heads' first prior is Gaussian: no closed form


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_posteriors:Part", r"is not a vcl_radial.posteriors.Posterior"),
        ("own_posteriors:Nobody", "has no 'Nobody'"),
        ("vcl_radial.posteriors:Posterior", "lacks entropy, log_prob, noise, scale_for_weight"),
        ("nowhere_at_all:Own", "run the command in the folder"),
    ],
)
def test_what_is_wrong_with_the_name_of_a_posterior_is_said(name, message, own_posterior):
    with pytest.raises(UserError, match=message):
        list(iter_verdicts(recipe_for("vcl", {"posterior": name})))


def test_networks_take_the_class_itself_and_carry_it():
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    settings = PosteriorSettings(Laplace, grouping="unit", initial_noise=0.05)
    for network in (to_bayesian(plain, Laplace), MLP(4, 2, hidden=[5], posterior=settings)):
        blocks = [m for m in network.modules() if isinstance(m, PosteriorBlock)]
        assert {block.family for block in blocks} == {Laplace}
        assert {block.prior_family for block in blocks} == {Gaussian}
        assert kl_divergence(network, [0]).isfinite()
        consolidate(network, [0])
        assert {block.prior_family for block in blocks} == {Laplace}
        # Closed now: the same every time, and 0.
        torch.testing.assert_close(
            kl_divergence(network, [0]), torch.tensor(0.0), atol=1e-4, rtol=0
        )
    noise = network.body[0].weights.posterior_blocks()[0].weight_noise()
    torch.testing.assert_close(noise, torch.full_like(noise, 0.05))


def test_the_closed_form_serves_a_family_that_has_its_own():
    """`kl_gradients` is used where the class has it, and not taken from a parent."""

    class Derived(WithGradients):
        pass

    serves = [
        ClosedFormGradients.serves(MLP(4, 2, hidden=[5], posterior=family))
        for family in (Gaussian, WithGradients, Laplace, Derived)
    ]
    assert serves == [True, True, False, False]
