"""What a camera adds is taken away, and what a lesion adds stays."""

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from vcl_radial.data.fundus.local_normalisation import GREY, locally_normalised
from vcl_radial.data.fundus.prepare import squared


def field(size, radius=1.0, middle=(0.0, 0.0)):
    """Which pixels of a square from -1 to 1 lie in a disc."""
    axis = (np.arange(size) + 0.5) / size * 2 - 1
    return np.hypot(axis - middle[0], axis[:, None] - middle[1]) < radius


def texture(size, seed=0):
    """Colours that vary smoothly and finely, from 60 to 190, `[S, S, 3]` in floating point."""
    noise = np.random.default_rng(seed).standard_normal((size, size, 3))
    fine = gaussian_filter(noise, (1.5, 1.5, 0))
    return np.array([150.0, 110, 80]) * (1 + 0.08 * fine / fine.std())


def picture(values, lit=None):
    lit = field(len(values)) if lit is None else lit
    return (values.clip(0, 255) * lit[..., None]).round().astype(np.uint8)


def test_a_local_normalisation_follows_its_formula():
    """Pixel by pixel, where the knots are the pixels."""
    size = 44
    square = picture(texture(size), field(size, 0.9))
    w = (square.max(-1) > 18).astype(float)
    rows, columns = np.mgrid[:size, :size]

    def mean(values, y, x):
        down, right = (rows - y) / (size / 12), (columns - x) / (size / 12)
        g = np.exp(-(down**2 + right**2) / 2) * (abs(down) <= 2) * (abs(right) <= 2)
        return (g * w * values).sum() / (g * w).sum() if (g * w).any() else 0.0

    def means(values):
        return np.array([[mean(values, y, x) for x in range(size)] for y in range(size)])

    for channel in (0, 2):
        x = square[..., channel].astype(float)
        m = means(x)
        r = w * (x - m) / (m + 10)
        y = 128 + 45 * r / (np.sqrt(means(r**2) + 1e-4) + 0.02)
        y = np.where(field(size, 0.92), y, 128).clip(0, 255)
        assert np.abs(locally_normalised(square)[..., channel] - y).max() < 0.51


@pytest.mark.parametrize("size", [8, 47, 96, 250])
def test_a_square_of_any_edge_keeps_its_size_and_is_grey_outside_the_circle(size):
    square = np.random.default_rng(0).integers(40, 256, (size, size, 3), dtype=np.uint8)
    normalised = locally_normalised(square)
    assert normalised.shape == square.shape
    assert normalised.dtype == np.uint8
    assert (normalised[~field(size, 0.92)] == GREY).all()
    assert normalised[field(size, 0.9)].std() > 30


def test_the_same_everywhere_is_grey_and_so_is_the_dark():
    for value in (0, 90, 255):
        assert (locally_normalised(np.full((60, 60, 3), value, np.uint8)) == GREY).all()


def test_the_light_and_the_colours_of_a_camera_are_taken_away():
    values = texture(240)
    axis = np.linspace(-1, 1, 240)
    vignette = 1 - 0.3 * (axis**2 + axis[:, None] ** 2)[..., None]
    other = values * vignette * np.array([0.9, 1.2, 1.4]) * (1 + 0.2 * axis[:, None])
    inside = field(240, 0.88)
    plain, changed = (locally_normalised(picture(v))[inside].astype(float) for v in (values, other))
    for channel in range(3):
        assert np.corrcoef(plain[:, channel], changed[:, channel])[0, 1] > 0.98
        assert plain[:, channel].mean() == pytest.approx(GREY, abs=4)
        assert changed[:, channel].mean() == pytest.approx(GREY, abs=4)
        assert changed[:, channel].std() == pytest.approx(plain[:, channel].std(), rel=0.04)


def test_the_shape_of_the_field_does_not_show():
    values = texture(240)
    notch = field(240) | field(240, 0.1, (0.7, -0.7))
    whole, narrow = (locally_normalised(picture(values, lit)) for lit in (notch, field(240, 0.95)))
    assert np.array_equal(whole[~field(240, 0.92)], narrow[~field(240, 0.92)])
    assert np.abs(whole.astype(int) - narrow)[field(240, 0.75)].max() <= 12


def test_it_comes_before_the_resizing_and_only_where_it_is_asked_for():
    whole = picture(texture(240))
    image = Image.fromarray(whole)
    normalised = Image.fromarray(locally_normalised(whole))
    for size in (240, 60):
        for normalise, expected in (("local", normalised), ("none", image)):
            resized = expected.resize((size, size), Image.Resampling.LANCZOS)
            square = squared(image, size, crop=False, normalise=normalise)
            assert np.array_equal(square, resized)
