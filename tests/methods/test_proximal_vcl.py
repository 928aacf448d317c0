"""The proximal step against its definition, and what it does at the tip."""

import math

import pytest
import torch
from failing import refuses
from scenarios import ALL, Learner, network
from torch.optim import SGD, Adam, RMSprop

from vcl_radial import native
from vcl_radial.methods.proximal_vcl import Cone, ProximalVCL, step_rates
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import PosteriorBlock, PosteriorSettings, posterior_blocks
from vcl_radial.nn.rdp import RDPSettings

D = 50
families = pytest.mark.parametrize("family", ["radial", "radial-eq44", "gaussian"])


class ByAutograd(VCL):
    """VCL whose penalty only autograd can see through."""

    def penalty(self):
        return super().penalty() * 1.0


def carried(family: str, groups: int = 3) -> PosteriorBlock:
    """A block whose prior has scales that differ, and whose means are still the prior's."""
    generator = torch.Generator().manual_seed(0)
    settings = PosteriorSettings(family=family, initial_noise=0.1)
    block = settings.make_block(torch.randn(groups, D, generator=generator).double())
    with torch.no_grad():
        block.rho += 0.3 * torch.randn(groups, D, generator=generator)
    block.consolidate()
    return block


def moved(block: PosteriorBlock, distance: float) -> torch.Tensor:
    """Move the means so far along a random ray, in the prior's scales; the ray."""
    ray = torch.randn(block.mean.shape, generator=torch.Generator().manual_seed(1)).double()
    ray /= torch.linalg.vector_norm(ray, dim=-1, keepdim=True)
    with torch.no_grad():
        block.mean += distance * ray * block.prior_scale
    return ray


def distances(block: PosteriorBlock) -> torch.Tensor:
    shift = (block.mean.detach() - block.prior_mean) / block.prior_scale
    return torch.linalg.vector_norm(shift, dim=-1, keepdim=True)


@families
@pytest.mark.parametrize("distance", [0.3, 2.0, 30.0])
def test_the_slope_is_that_of_the_kl_along_the_ray(family, distance):
    block = carried(family)
    ray = moved(block, distance)
    slope = Cone.from_block(block).slope(ray, torch.full((3, 1), distance).double())
    values = []
    for step in (-1e-4, 1e-4):
        mean = block.mean.detach() + step * ray * block.prior_scale
        values.append(block.family(mean, block.scale()).kl(block.prior))
    torch.testing.assert_close(slope.squeeze(-1), (values[1] - values[0]) / 2e-4, rtol=1e-4, atol=0)


def test_only_the_corrected_radial_prior_has_a_tip():
    tips = {}
    for family in ("radial", "radial-eq44", "gaussian"):
        block = carried(family, groups=1)
        with torch.no_grad():  # equal scales, as in the module's formula
            block.rho.fill_(block.rho.mean())
        block.consolidate()
        tips[family] = (
            Cone.from_block(block).slope(moved(block, 0.0), torch.zeros(1, 1).double()).item()
        )
    assert tips["radial"] == pytest.approx(math.sqrt(math.pi / 2) * (D - 1), rel=1 / D)
    assert tips["radial-eq44"] < 1e-3
    assert tips["gaussian"] < 1e-3


@pytest.mark.parametrize("rate", [1e-5, 1e-3])
def test_a_step_minimises_what_it_says(rate):
    block = carried("radial")
    ray = moved(block, 2.0)
    before, weight = torch.full((3, 1), 1.5).double(), 0.7
    metric = (ray.square() * block.prior_scale.square()).sum(-1, keepdim=True) / rate
    tangent = weight * Cone.from_block(block).slope(ray, before)
    Cone.from_block(block).draw_back(before, weight, rate)
    r = torch.linspace(0, 3, 30_001).double()
    objective = metric / 2 * (r - 2.0).square() + tangent * r
    best = r[objective.argmin(-1, keepdim=True)]
    torch.testing.assert_close(distances(block), best, rtol=0, atol=1e-4)
    assert (best < 2).all()


def test_a_group_stays_where_it_was_until_it_is_pulled_harder_than_it_is_held():
    for distance, rests in ((0.0, True), (1e-3, True), (3.0, False)):
        block = carried("radial")
        moved(block, distance)  # of 0, it has no ray
        Cone.from_block(block).draw_back(torch.zeros(3, 1).double(), 1e-5, 1.0)
        assert torch.equal(block.mean, block.prior_mean) == rests


@pytest.mark.parametrize("amsgrad", [True, False])
def test_the_metric_is_the_one_in_which_adam_has_stepped(amsgrad):
    """Gradient and length of a first step give back what it was made with, eps included."""
    block = carried("radial")
    gradient = torch.rand(block.mean.shape, dtype=torch.float64) + 0.1
    optimizer = Adam([block.mean], lr=0.01, eps=0.05, amsgrad=amsgrad)
    block.mean.grad = gradient.clone()
    optimizer.step()
    step = block.prior_mean - block.mean.detach()
    ray = step / block.prior_scale
    ray /= torch.linalg.vector_norm(ray, dim=-1, keepdim=True)
    metric = (ray.square() * block.prior_scale.square() * gradient / step).sum(-1, keepdim=True)
    expected = (
        distances(block) - 1e-3 * Cone.from_block(block).slope(-ray, distances(block)) / metric
    )
    Cone.from_block(block).draw_back(distances(block), 1e-3, step_rates(block.mean, optimizer))
    torch.testing.assert_close(distances(block), expected.clamp(min=0), rtol=1e-5, atol=0)


@families
def test_the_optimiser_steps_along_the_gradient_of_the_likelihood_alone(family):
    """Where the likelihood is flat, nothing is left of the gradient of a carried mean."""
    whole, left = [], []

    class Recording(SGD):
        def step(self, closure=None):
            left[:] = [block.mean.grad.clone() for block in learner.method._blocks]
            return super().step(closure)

    class WithoutData(ProximalVCL):
        def begin_task(self, task):
            super().begin_task(task)
            for block in self._blocks:
                moved(block, 2.0)

        def loss(self, batch, outputs):
            return self.penalty() / self.task.points

        def step(self, optimizer):
            whole[:] = [(block.carried, block.mean.grad.clone()) for block in self._blocks]
            super().step(optimizer)

    settings = {"optimizer": Recording, "lr": 1e-6, "batch_size": ALL}
    learner = Learner(WithoutData, network(family), **settings)
    learner.train(0, 1)
    assert {carried for carried, _ in whole} == {True, False}
    for (carried, before), after in zip(whole, left, strict=True):
        expected = torch.zeros_like(before) if carried else before
        scale = before.abs().max().item()
        torch.testing.assert_close(after, expected, rtol=0, atol=1e-4 * scale)


class ByAutogradProximal(ProximalVCL):
    """With a step of its own, which the closed form does not take over."""

    def step(self, optimizer):
        super().step(optimizer)


@pytest.mark.parametrize("family", ["radial", "gaussian"])
def test_with_a_weight_of_nothing_it_is_vcl(family):
    for pair in ((ProximalVCL, VCL), (ByAutogradProximal, ByAutograd)):
        ends = [
            Learner(method, network(family), kl_weight=0.0).train(0, 1).weights() for method in pair
        ]
        torch.testing.assert_close(*ends, rtol=0, atol=1e-6)


@pytest.mark.parametrize("optimizer", [Adam, SGD])
@families
def test_in_closed_form_it_goes_where_autograd_leads_it(family, optimizer, monkeypatch):
    # The compiled pass has a generator of its own; for once it is to draw what PyTorch draws.
    monkeypatch.setattr(native, "standard_normal", lambda out: out.normal_())
    taken_over = []

    def end_task(self, task):
        taken_over.append(self._closed_form is not None)
        VCL.end_task(self, task)

    monkeypatch.setattr(ProximalVCL, "end_task", end_task)
    settings = {"optimizer": optimizer, "lr": 1e-2, "kl_weight": 1e-2}
    ends = [
        Learner(method, network(family), **settings).train(0, 1).weights()
        for method in (ProximalVCL, ByAutogradProximal)
    ]
    assert taken_over == [True, True, False, False]
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-4)


def test_a_body_that_is_held_rests_exactly_and_the_new_head_learns():
    resting = {}
    for weight in (1e-6, 1e-2):
        learner = Learner(ProximalVCL, network("radial"), epochs=5, kl_weight=1e-2, lr=2e-2)
        learner.train(0)
        body = [block.mean for block in posterior_blocks(learner.network, [])]
        before = [mean.detach().clone() for mean in body]
        learner.method.kl_weight = weight
        assert learner.train(1).accuracy(1) > 85
        resting[weight] = all(map(torch.equal, body, before))
    assert resting == {1e-6: False, 1e-2: True}


def test_a_posterior_without_a_closed_form_and_another_optimiser_are_refused():
    for posterior in (RDPSettings("row"), "low-rank", "radial-low-rank"):
        with refuses("posterior"):
            Learner(ProximalVCL, network(posterior, hidden=(8,)))
    with refuses("RMSprop"):
        Learner(ProximalVCL, network("radial"), optimizer=RMSprop).train(0)
