import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from reports.analysis import training_dynamics, two_posteriors
from reports.analysis.fitting import Recipe, fit
from reports.analysis.images import Images
from reports.analysis.sample_distance import ratio_at_equal_sigma
from reports.analysis.two_posteriors import Histories, Stage, measure
from reports.papers.analysis import Setting
from vcl_radial.errors import Diverged
from vcl_radial.likelihoods.objectives import categorical_nll
from vcl_radial.metrics.verdicts import Verdict
from vcl_radial.nn import MLP, PosteriorSettings, posterior_blocks
from vcl_radial.nn.vgg import VGG
from vcl_radial.posteriors import Gaussian, Radial


@pytest.fixture
def images():
    torch.manual_seed(0)
    x, y = torch.randn(60, 20), torch.randint(3, (60,))
    return Images("random", x, y, x, y, 3)


def network(family, hidden=(30, 30)):
    torch.manual_seed(1)
    settings = PosteriorSettings(family, initial_rho=-3.0)
    return MLP(20, 3, hidden=hidden, multi_head=False, posterior=settings)


def test_a_stage_has_the_exact_prior_term(images):
    subject = network("gaussian")
    stage = measure(subject, images, 30, 4, seed=0)
    kl, cross_entropy = 0.0, 0.0
    for block in posterior_blocks(subject, [0]):
        mean, sigma = block.mean.detach().double(), block.scale().detach().double()
        squares = (mean.square() + sigma.square()) / 2
        kl += float((squares - 0.5 - sigma.log()).sum())
        cross_entropy += float((squares + math.log(2 * math.pi) / 2).sum())
    assert stage.kl == pytest.approx(kl / 60, rel=1e-5)
    assert stage.cross_entropy == pytest.approx(cross_entropy / 60, rel=1e-5)
    assert stage.epoch == 4
    assert stage.sigma_low <= stage.sigma <= stage.sigma_high
    assert stage.sigma == pytest.approx(math.log1p(math.exp(-3)), rel=1e-5)


def test_the_distances_to_the_mean_have_the_ratio_of_equal_sigma(images):
    distances = {}
    for family in ("gaussian", "radial"):
        subject = network(family)
        distances[family] = measure(subject, images, 30, 0, seed=0).distance
    weights = sum(block.mean.numel() for block in posterior_blocks(network("radial"), [0]))
    expected = ratio_at_equal_sigma(weights, 3)
    # chi(3) has a relative deviation of 0.42; 128 draws.
    assert distances["gaussian"] / distances["radial"] == pytest.approx(expected, rel=0.15)


def test_measuring_leaves_network_and_randomness_alone(images):
    subject = network("radial")
    before = [parameter.clone() for parameter in subject.parameters()]
    state = torch.get_rng_state()
    first = measure(subject, images, 30, 0, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, before, subject.parameters()))
    assert measure(subject, images, 30, 0, seed=3) == first


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_training_is_adam_on_the_nll_and_its_share_of_the_kl(family, images):
    class OneNoise({"gaussian": Gaussian, "radial": Radial}[family]):
        """All draws are one: their order is not what is compared."""

        def noise(self, n, generator=None):
            return torch.full((n, *self.mean.shape), 0.5)

    recipe = Recipe(2, batch_size=20, learning_rate=1e-2, rho_learning_rate=3e-2, samples=2)
    ours, plain = network(family), network(family)
    for block in (*posterior_blocks(ours, [0]), *posterior_blocks(plain, [0])):
        block.family = OneNoise
    torch.manual_seed(2)
    assert list(fit(ours, images.train_x, images.train_y, recipe)) == [1, 2]

    torch.manual_seed(2)
    blocks = posterior_blocks(plain, [0])
    optimizer = torch.optim.Adam(
        [
            {"params": [block.mean for block in blocks], "lr": 1e-2},
            {"params": [block.rho for block in blocks], "lr": 3e-2},
        ]
    )
    for _ in range(2):
        for rows in torch.randperm(60).split(20):
            x, y = images.train_x[rows], images.train_y[rows]
            loss = categorical_nll(torch.stack([plain(x) for _ in range(2)]), y)
            loss = loss + sum(block.kl() for block in blocks) / 60
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for a, b in zip(posterior_blocks(ours, [0]), blocks, strict=True):
        assert torch.allclose(a.mean, b.mean, atol=2e-5)
        assert torch.allclose(a.rho, b.rho, atol=2e-5)


def test_a_loss_that_is_no_number_ends_the_training(images):
    recipe = Recipe(1, batch_size=20, learning_rate=1e30, rho_learning_rate=1.0, samples=1)
    with pytest.raises(Diverged):
        list(fit(network("gaussian"), images.train_x, images.train_y, recipe))


def test_both_posteriors_start_alike_and_only_the_fast_ones_sigma_gets_far(monkeypatch):
    torch.manual_seed(0)
    x, y = torch.randn(60, 3, 16, 16), torch.randint(2, (60,))
    eyes = Images("random", x, y, x, y, 2)
    monkeypatch.setattr(two_posteriors, "load_eyes", lambda *_: eyes)
    monkeypatch.setattr(two_posteriors, "QUICK", Recipe(8, 30, 1e-2, 1e-2, 1))
    for name, value in {"_QUICK_STAGES": 2, "_PAIRS": 1, "_DRAWS": 2, "_DISTANCES": 2}.items():
        monkeypatch.setattr(two_posteriors, name, value)
    two_posteriors.train_both.cache_clear()
    said = []
    found = two_posteriors.train_both(Setting(quick=True, seed=91, say=said.append))
    stages = found.stages
    assert [stage.epoch for stage in stages["radial"]] == [0, 4, 8]
    starts = {name: s[0] for name, s in stages.items()}
    assert len({start.sigma for start in starts.values()}) == 1
    fast = stages[two_posteriors.FAST_RADIAL][-1].sigma
    assert fast > 10 * stages["radial"][-1].sigma > 10 * starts["radial"].sigma
    assert len(said) == 3 * 2
    assert found.radii == 14
    expected = VGG(two_posteriors.QUICK_CHANNELS, 2, posterior="none")
    assert found.weights == sum(parameter.numel() for parameter in expected.parameters())
    two_posteriors.train_both.cache_clear()


def test_drawn_pictures_and_a_single_run_decide_no_claim(images):
    def rule(real, alike):
        histories = Histories({}, replace(images, real=real), two_posteriors.QUICK, 2, 100, 14)
        return histories.rules({"claim": alike})["claim"]

    assert {rule(False, alike).verdict for alike in (True, False)} == {Verdict.NOT_COMPARABLE}
    assert {rule(True, alike).verdict for alike in (True, False)} == {Verdict.NO_EVIDENCE}


def test_gradient_noise_that_grows_and_falls_again_before_the_end_has_grown(images, monkeypatch):
    monkeypatch.setattr(training_dynamics, "analysis", lambda module, curves, numbers, rules: rules)

    def grows(gaussian, radial):
        noise = dict.fromkeys(two_posteriors.NAMES, radial) | {two_posteriors.MFVI: gaussian}
        stages = {
            name: [Stage(k, *[1.0] * 4, sd, *[1.0] * 4) for k, sd in enumerate(values)]
            for name, values in noise.items()
        }
        histories = Histories(stages, replace(images, real=True), two_posteriors.QUICK, 2, 100, 14)
        monkeypatch.setattr(training_dynamics, "train_both", lambda _: histories)
        return training_dynamics.analyse(Setting())["noise"].alike

    low = [0.003] * 6
    assert grows([0.001, 0.003, 0.003, 0.5, 2.4, 0.0014], low)
    assert not grows(low, low)
    # A radial posterior whose noise has peaked as high does not stay low.
    assert not grows([0.001, 0.003, 0.003, 0.5, 2.4, 2.0], [0.001, 2.0, *[0.001] * 4])


def test_every_block_of_a_network_is_found():
    blocks = posterior_blocks(nn.Sequential(network("radial")), [0])
    assert sum(block.mean.numel() for block in blocks) == 20 * 30 + 30 + 30 * 31 + 31 * 3
