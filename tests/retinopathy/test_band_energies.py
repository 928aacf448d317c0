import math
from itertools import pairwise

import pytest
import torch

from vcl_radial.tracks.retinopathy.band_energies import BandEnergies


def features(x):
    """Before they are standardised."""
    network = BandEnergies(x.shape[1:])
    network.standardise = torch.nn.Identity()
    return network(x)


def waves(period):
    """One image of 64 pixels whose columns go up and down."""
    columns = torch.cos(2 * math.pi * (torch.arange(64) + 0.3) / period)
    return columns.expand(1, 1, 64, 64).contiguous()


@pytest.mark.parametrize(("size", "octaves"), [(8, 1), (15, 1), (16, 2), (64, 4), (96, 4), (3, 0)])
def test_octaves_end_at_four_pixels_and_there_are_as_many_features_as_said(size, octaves):
    network = BandEnergies((3, size, size))
    assert network.octaves == octaves
    assert network(torch.randn(4, 3, size, size)).shape == (4, 2 * 3 * (octaves + 1))


def test_longer_waves_have_their_energy_in_later_octaves():
    middles = []
    for period in (2, 4.7, 9.4, 18.8):
        energies = features(waves(period))[0, 1:8:2].exp() ** 2
        middles.append(float(energies @ torch.arange(4.0) / energies.sum()))
    assert middles[0] < 0.01
    assert all(later > earlier + 0.4 for earlier, later in pairwise(middles))


def test_twice_the_contrast_is_log_2_in_every_octave():
    x = 100 * torch.randn(2, 3, 32, 32)
    change = features(2 * x)[:, :-6] - features(x)[:, :-6]
    torch.testing.assert_close(change, torch.full_like(change, math.log(2)), atol=1e-4, rtol=0)


def test_brightness_is_in_the_last_mean_alone():
    x = torch.randn(2, 3, 32, 32)
    change = features(x + 5) - features(x)
    brightness = change[:, -6:-3]
    torch.testing.assert_close(brightness, torch.full_like(brightness, 5.0))
    change[:, -6:-3] = 0
    torch.testing.assert_close(change, torch.zeros_like(change), atol=1e-3, rtol=0)


def test_quarter_turns_and_flips_change_nothing():
    x = torch.randn(2, 3, 32, 32)
    for moved in (x.rot90(1, (2, 3)), x.flip(2), x.flip(3)):
        torch.testing.assert_close(features(moved), features(x))


def test_in_prediction_features_are_standardised_by_all_batches_of_training():
    network = BandEnergies((1, 16, 16))
    x = torch.randn(8, 10, 1, 16, 16)
    for batch in x:
        network(batch)
    standardised = network.eval()(x.flatten(0, 1))
    mean, deviation = standardised.mean(0), standardised.std(0)
    torch.testing.assert_close(mean, torch.zeros_like(mean), atol=1e-4, rtol=0)
    torch.testing.assert_close(deviation, torch.ones_like(mean), atol=0.2, rtol=0)


def test_a_flat_image_has_finite_features():
    assert torch.isfinite(features(torch.zeros(1, 3, 16, 16))).all()
