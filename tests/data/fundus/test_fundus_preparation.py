from functools import partial

import numpy as np
import pytest
from PIL import Image

from vcl_radial.data.fundus.prepare import field_of_view, squared

squared = partial(squared, normalise="none")


def ellipse(size=(120, 160), middle=(60, 80), half=(40, 50), value=200):
    """A lit ellipse on black, `[high, wide, 3]`."""
    y, x = np.mgrid[: size[0], : size[1]]
    inside = ((y - middle[0]) / half[0]) ** 2 + ((x - middle[1]) / half[1]) ** 2 <= 1
    return np.where(inside[..., None], np.uint8(value), np.uint8(0)).repeat(3, axis=2)


def test_the_field_is_found_to_within_a_fiftieth_of_it():
    box = field_of_view(Image.fromarray(ellipse()))
    assert np.allclose(box, (30, 20, 131, 101), atol=2)


@pytest.mark.parametrize("factor", [1, 4])
def test_specks_in_the_margin_do_not_widen_the_field(factor):
    picture = ellipse().repeat(factor, 0).repeat(factor, 1)
    rng = np.random.default_rng(0)
    specks = (picture == 0) & (rng.random(picture.shape[:2]) < 0.1)[..., None]
    with_specks = np.where(specks, np.uint8(120), picture)
    box = np.array(field_of_view(Image.fromarray(with_specks)))
    assert np.allclose(box / factor, (30, 20, 131, 101), atol=3)


def test_a_shadow_across_the_field_does_not_halve_it():
    picture = ellipse()
    picture[:, 75:86] = 0
    box = field_of_view(Image.fromarray(picture))
    assert np.allclose(box, (30, 20, 131, 101), atol=3)


@pytest.mark.parametrize("value", [0, 3, 255])
def test_a_picture_that_is_the_same_all_over_is_left_whole(value):
    picture = Image.new("RGB", (33, 21), (value,) * 3)
    assert field_of_view(picture) == (0, 0, 33, 21)


def test_where_the_field_lies_in_the_picture_does_not_matter():
    here = squared(Image.fromarray(ellipse()), 32)
    there = squared(Image.fromarray(ellipse(middle=(70, 105))), 32)
    assert np.array_equal(here, there)


def test_proportions_are_kept_and_the_rest_is_black():
    square = squared(Image.fromarray(ellipse(half=(30, 60))), 64)
    lit = square.max(-1) > 100
    wide, high = lit.any(0).sum(), lit.any(1).sum()
    assert wide == pytest.approx(64, abs=2)
    assert high == pytest.approx(32, abs=2)
    rows = np.flatnonzero(lit.any(1))
    assert rows[0] == pytest.approx(63 - rows[-1], abs=1)


def test_a_picture_of_the_right_size_is_left_as_it_is():
    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert np.array_equal(squared(Image.fromarray(picture), 32, crop=False), picture)
    full = np.full((32, 32, 3), 77, np.uint8)
    assert np.array_equal(squared(Image.fromarray(full), 32), full)


def test_light_is_neither_lost_nor_made_by_resizing():
    picture = Image.fromarray(ellipse())
    mean = squared(picture, 101, crop=True).mean()
    for size in (16, 32, 64, 200):
        assert squared(picture, size).mean() == pytest.approx(mean, rel=0.03)
