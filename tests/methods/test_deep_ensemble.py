"""Deep ensembles: members start apart, learn as if alone, and count the same."""

import copy
import math

import pytest
import torch
from failing import fails
from scenarios import Learner, network
from torch import nn

from vcl_radial.methods.deep_ensemble import DeepEnsemble
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import PosteriorSettings, WithHeads, kl_divergence
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.nn.restart import restarted

POSTERIORS = {
    "none": None,
    "by layer": PosteriorSettings("radial", "layer", initial_noise=1e-3),
    "by unit": PosteriorSettings("gaussian", "unit", initial_noise=1e-3),
    "rdp": RDPSettings("row", 1e-3),
}


@pytest.mark.parametrize("posterior", POSTERIORS.values(), ids=POSTERIORS)
def test_a_restart_has_the_same_weights_elsewhere(posterior):
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(6, 50), nn.BatchNorm1d(50), nn.ReLU())
    first = WithHeads(body, (6,), 3, multi_head=False, posterior=posterior)
    other = restarted(first)
    layers = (first.body[0], other.body[0])
    weights, biases = zip(*map(weight_and_bias, layers), strict=True)
    assert not torch.allclose(*weights, atol=1e-3)
    for one, another in (weights, biases):
        torch.testing.assert_close(one.flatten().sort()[0], another.flatten().sort()[0])
    assert torch.equal(first.body[1].weight, other.body[1].weight)
    divergences = kl_divergence(first, [0]), kl_divergence(other, [0])
    torch.testing.assert_close(*divergences, rtol=1e-2, atol=0)


def weight_and_bias(layer):
    if isinstance(layer, nn.Linear):
        return layer.weight, layer.bias
    return layer.weights.mean()


def test_heads_to_come_start_elsewhere():
    members = DeepEnsemble(network(None), members=3).members
    for member in members:
        member.head.adapt([4])
    starts = [member.head.heads["4"].weight for member in members]
    assert len({start[0, 0].item() for start in starts}) == 3


def test_a_member_learns_as_if_it_were_alone():
    ensemble = Learner("deep_ensemble", network(None), members=3, epochs=2)
    alone = [Learner(Naive, copy.deepcopy(member), epochs=2) for member in ensemble.method.members]
    ensemble.train(0, 1)
    for member, learner in zip(ensemble.method.members, alone, strict=True):
        learner.train(0, 1)
        torch.testing.assert_close(member.state_dict(), learner.network.state_dict())


def test_the_prediction_is_the_mean_of_the_members():
    learner = Learner("deep_ensemble", network(None), members=3).train(0)
    x = learner.stream.inputs(0, "test")
    method = learner.method
    alone = [Naive(member, eval_samples=1).predict(x, 0).exp() for member in method.members]
    torch.testing.assert_close(method.predict(x, 0).exp(), torch.stack(alone).mean(0))


def test_its_objective_is_the_sum_of_its_members():
    posterior = PosteriorSettings("gaussian", initial_noise=1e-7)  # too little to be seen
    ensemble = Learner("deep_ensemble", network(posterior), members=3, loss_value=True)
    alone = [
        Learner(VCL, copy.deepcopy(m), loss_value=True).standing_loss(0)
        for m in ensemble.method.members
    ]
    torch.testing.assert_close(ensemble.standing_loss(0), sum(alone))


@pytest.mark.parametrize("samples", [1, 5, 9])
def test_members_draw_as_often_as_each_other_but_for_a_remainder(samples):
    method = DeepEnsemble(network(None, multi_head=False), members=3)
    x = torch.randn(2, 64)
    outputs = torch.stack([member(x, 0) for member in method.members])
    of_member = torch.zeros(3)
    for seed in range(200):
        distance = method.draws(x, samples=samples, seed=seed)[:, None] - outputs
        counts = distance.square().sum((2, 3)).argmin(1).bincount(minlength=3)
        assert counts.max() - counts.min() == (samples % 3 > 0)
        of_member += counts
    expected = 200 * samples / 3
    assert (of_member - expected).abs().max() <= 4 * math.sqrt(200 * 2 / 9)


def test_samples_are_rounded_up_to_whole_rounds():
    assert DeepEnsemble(network("radial"), members=3, eval_samples=100).eval_samples == 102
    assert DeepEnsemble(network(None), members=5, eval_samples=1).eval_samples == 5


def test_points_carry_nothing_and_posteriors_do():
    assert DeepEnsemble(network(None), members=2).memoryless
    assert not DeepEnsemble(network("radial"), members=2).memoryless


def test_its_movement_is_that_of_a_member():
    ensemble = Learner("deep_ensemble", network("radial"), members=2)
    alone = [Learner(VCL, copy.deepcopy(member)) for member in ensemble.method.members]
    for learner in (ensemble, *alone):
        learner.method.end_task(learner.begin(0))
    of_members = [learner.method.movement for learner in alone]
    for row, *others in zip(ensemble.method.movement, *of_members, strict=True):
        assert row.layer == others[0].layer
        assert row.kl == pytest.approx(sum(other.kl for other in others) / 2)


def test_no_member_is_refused():
    with fails("options.members"):
        DeepEnsemble(network(None), members=0)
