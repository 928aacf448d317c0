import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reports.seeds.pruning.mlp.pruning import (
    SHARES,
    Trained,
    accuracies,
    logits,
    pruned,
    signal_to_noise,
)
from reports.seeds.pruning.mlp.training import load_stream, make_network, train
from reports.seeds.pruning.settings import MLPData
from reports.seeds.pruning.track import runs_of
from vcl_radial.nn import PosteriorSettings
from vcl_radial.optimizers.natural_gradient import LEFT


def recipe(name, **keys):
    (run,) = runs_of("pruning-mlp", [name], [0], {"data.dataset": "digits", **keys})
    return run.recipe


def parameters(seed=0, shapes=((7, 5), (7,), (5, 3), (5,))):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def flat(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors])


@pytest.fixture(scope="module")
def digits():
    return load_stream(MLPData(dataset="digits"), None, torch.device("cpu"))


@given(st.floats(0, 100), st.integers(0, 9))
def test_the_share_goes_and_those_that_stay_have_higher_ratios(share, seed):
    means, ratios = parameters(seed), [w.abs() for w in parameters(seed + 100)]
    left = flat(pruned(means, ratios, share))
    gone = left == 0
    assert int(gone.sum()) == int(share / 100 * len(left))
    assert torch.equal(left[~gone], flat(means)[~gone])
    if 0 < int(gone.sum()) < len(left):
        order = flat(ratios)
        assert float(order[gone].max()) <= float(order[~gone].min())


def test_without_scales_a_weight_counts_by_its_size():
    means = parameters()
    ones = [torch.ones_like(mean) for mean in means]
    assert torch.equal(flat(signal_to_noise(means, None)), flat(signal_to_noise(means, ones)))


def test_no_common_factor_of_the_scales_changes_the_order():
    """So N, which scales BAdam's precision, does not matter (Appendix D.2)."""
    means, scales = parameters(0), [w.abs() for w in parameters(1)]
    wider = [1000 * scale for scale in scales]
    a, b = (pruned(means, signal_to_noise(means, s), 50) for s in (scales, wider))
    assert torch.equal(flat(a), flat(b))


def test_a_weight_that_no_gradient_ever_moved_goes_first():
    weight = torch.tensor([[5.0, 0.1]])
    means, bias_scale = [weight, torch.ones(1)], torch.ones(1)
    ratios = signal_to_noise(means, [torch.tensor([[math.inf, 0.01]]), bias_scale])
    assert pruned(means, ratios, 40)[0].tolist() == [[0.0, pytest.approx(0.1)]]


def test_the_ratio_of_a_weight_under_dropout_does_not_depend_on_the_weight():
    """Why MC dropout has no order by signal-to-noise: w z / keep, z ~ Bernoulli(keep)."""
    keep = 0.8
    z = torch.empty(200_000).bernoulli_(keep, generator=torch.Generator().manual_seed(0)) / keep
    for w in (0.01, 1.0, -30.0):
        ratio = float((w * z).mean().abs() / (w * z).std())
        assert ratio == pytest.approx(math.sqrt(keep / (1 - keep)), rel=0.01)


@pytest.mark.parametrize("name", ["badam", "bbb"])
def test_the_layers_read_off_are_the_network(name, digits):
    torch.manual_seed(0)
    network = make_network(recipe(name, hidden=[12, 8]), digits).eval()
    if name == "badam":
        linears = [m for m in network.modules() if isinstance(m, torch.nn.Linear)]
        read = [p for m in linears for p in (m.weight, m.bias)]
    else:
        weights = [m.weights for m in network.modules() if hasattr(m, "weights")]
        for of_layer in weights:  # no noise: a draw is the mean
            for block in of_layer.posterior_blocks():
                torch.nn.init.constant_(block.rho, -100.0)
        read = [mean for of_layer in weights for mean in of_layer.mean()]
    with torch.no_grad():
        torch.testing.assert_close(logits(read, digits.x[:9]), network(digits.x[:9]))


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_sigma_is_the_standard_deviation_of_one_weights_draws(family):
    torch.manual_seed(0)
    block = PosteriorSettings(family, initial_rho=-1.0).make_block(torch.zeros(1, 50))
    torch.nn.init.uniform_(block.rho, -2, 0)
    drawn = block.posterior.sample(40_000).std(0)
    torch.testing.assert_close(drawn, block.weight_noise(), rtol=0.03, atol=0)


def small(name, epochs=4):
    return recipe(name, hidden=[32, 32], epochs=epochs, batch_size=32)


def test_pixels_are_from_0_to_1(digits):
    assert (float(digits.x.min()), float(digits.x.max())) == (0.0, 1.0)


@pytest.mark.parametrize("name", ["badam", "bbb", "mc-dropout", "radial"])
def test_every_method_learns_and_half_of_its_weights_are_not_needed(name, digits):
    trained = train(small(name, 8), digits, 0)
    x, labels = digits.inputs(0, "test"), digits.labels(0, "test")
    scores = accuracies(trained, trained.scales, x, labels)
    assert scores[0] > 80
    assert scores[SHARES.index(20)] > scores[0] - 10
    assert scores[-1] < 40


def test_vadam_forgets_its_initial_precision_where_no_gradient_comes(digits):
    """precision = prior + initial precision * beta2^steps at a pixel that is never lit."""
    trained = train(small("vadam", 2), digits, 0)
    x = digits.inputs(0, "train")
    never = x.abs().sum(0) == 0
    precision = trained.scales[0][:, never] ** -2
    expected = 1 + LEFT / recipe("vadam").initial_noise ** 2
    torch.testing.assert_close(precision, torch.full_like(precision, expected), rtol=1e-3, atol=0)
    assert float(trained.scales[0][:, ~never].std()) > 0


def test_badams_sigma_is_read_off_adam(digits):
    """Without the prior in it, as Eq. 12 has it: infinite where a pixel is never lit."""
    trained = train(small("badam", 1), digits, 0)
    never = digits.inputs(0, "train").abs().sum(0) == 0
    assert bool(never.any())
    first = trained.scales[0]
    assert bool(torch.isinf(first[:, never]).all())
    assert bool(torch.isfinite(first[:, ~never]).any())


def test_the_seed_decides_the_network(digits):
    a, b, c = (flat(train(small("radial", 1), digits, seed).means) for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_masks_are_drawn_for_mc_dropout_alone(digits):
    means = train(small("mc-dropout", 1), digits, 0).means
    x, labels = digits.inputs(0, "test"), digits.labels(0, "test")
    sharp = accuracies(Trained(means, None), None, x, labels)
    masked = accuracies(Trained(means, None, dropout=0.7, samples=1), None, x, labels)
    assert masked[0] < sharp[0]
