import math

import pytest
import torch

from reports.papers.analysis import Setting
from reports.seeds.badam import toy_regression as toy
from reports.seeds.badam import toy_regression_seeds as seeds


def test_the_nll_is_lowest_at_the_targets_and_the_size_of_their_noise():
    x = torch.linspace(-0.5, 1.2, 400, dtype=torch.float64)
    draws = torch.stack([toy.truth(x, 0.02 * z) for z in torch.randn(500, 400).double()])
    noise = draws.std(0)
    scores = [
        seeds.nll(toy.Prediction(toy.truth(x) + shift, factor * noise), x, 0)
        for shift, factor in ((0.0, 1.0), (0.5, 1.0), (0.0, 20.0))
    ]
    assert min(scores) == scores[0]
    entropy = noise.log().mean() + (1 + math.log(2 * math.pi)) / 2
    assert scores[0] == pytest.approx(entropy.item(), abs=0.2)


def test_verdicts_follow_from_seeds_and_two_seeds_decide_nothing():
    found = seeds.analyse(Setting(quick=True))
    assert {str(claim.verdict) for claim in found.claims} == {"no evidence either way"}
    assert {curve.panel for curve in found.curves} == {seeds._METHODS, seeds._L2, seeds._BETA2}


@pytest.mark.parametrize("key", ["gradually", "others"])
def test_eight_seeds_decide_five_claims(key):
    names = (toy.BADAM, toy.LAPLACE, toy.BBB, toy.VADAM)
    jitter = torch.arange(8).double()[:, None].numpy() / 1000
    bands = [[0.1, 0.2, 0.3, 0.4, 0.5, 0.01, 1.0], *[[0.1, 0.2, 0.3, 0.4, 0.5, 0.01, 0.4]] * 3]
    widths = {
        (seeds._METHODS, name): torch.tensor([band] * 8).double().numpy() + jitter
        for name, band in zip(names, bands, strict=True)
    }
    scores = {at: [0.1 * k for k in range(8)] for at in seeds.runs()}
    _, verdicts = seeds._findings(widths, scores)
    assert str(verdicts[key]) == "reproduced"
    assert str(verdicts["l2"]) == "no evidence either way"
