"""The changes of training images do what each step of the paper says."""

import math

import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

from vcl_radial.data.fundus import Augmentation
from vcl_radial.data.fundus.augment import Changes, apply_changes

H = 32


def pictures(batch=3, size=H):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (batch, 3, size, size), generator=generator, dtype=torch.uint8)


def smooth(batch=2, size=64):
    """Waves that interpolation follows."""
    y, x = torch.meshgrid(*[torch.linspace(0, 1, size)] * 2, indexing="ij")
    waves = [torch.sin((5 + k) * x + k) + torch.cos((9 - k) * y + k * x) for k in range(3 * batch)]
    return 100 + 40 * torch.stack(waves).view(batch, 3, size, size)


def changes(batch=3, **parts):
    """No change but these."""
    pairs, ones = torch.zeros(batch, 2), torch.ones(batch)
    unchanged = Changes(pairs + 1, 0 * ones, pairs, ones, pairs)._asdict()
    for name, value in parts.items():
        unchanged[name] = torch.as_tensor(value).float().expand(unchanged[name].shape)
    return Changes(**unchanged)


def close(changed, expected, atol=0.02):
    """Equal on a scale to 255, up to the rounding of places in float32."""
    torch.testing.assert_close(changed, expected.float(), rtol=0, atol=atol)


@pytest.mark.parametrize("size", [8, 31, 32, 160])
def test_no_change_is_the_identity(size):
    images = pictures(size=size)
    close(apply_changes(images, changes()), images, atol=0.05)


@pytest.mark.parametrize(("flip", "dims"), [((-1, 1), [3]), ((1, -1), [2]), ((-1, -1), [2, 3])])
def test_flips_are_flips(flip, dims):
    close(apply_changes(pictures(), changes(flip=flip)), pictures().flip(dims))


@pytest.mark.parametrize("quarters", [-2, -1, 1, 2, 3])
def test_quarter_turns_are_exact_and_clockwise(quarters):
    turned = apply_changes(pictures(), changes(angle=quarters * math.pi / 2))
    close(turned, torch.rot90(pictures(), -quarters, (2, 3)))


def test_four_quarter_turns_are_the_identity():
    images = pictures().float()
    for _ in range(4):
        images = apply_changes(images, changes(angle=math.pi / 2))
    close(images, pictures(), atol=0.1)


@pytest.mark.parametrize(("down", "right"), [(3, 0), (0, -5), (2, 4)])
def test_a_shift_by_whole_pixels_moves_the_window_and_lets_in_black(down, right):
    changed = apply_changes(pictures(), changes(shift=(2 * right / H, 2 * down / H)))
    padded = torch.nn.functional.pad(pictures(), (8, 8, 8, 8))
    close(changed, padded[:, :, 8 + down : 8 + down + H, 8 + right : 8 + right + H])


def test_what_comes_in_from_outside_has_the_value_of_the_surround():
    image = torch.full((1, 3, H, H), 128.0)
    one = Augmentation().draw(1, torch.Generator().manual_seed(2))
    close(apply_changes(image, one, surround=128), image)
    assert (apply_changes(image, one) == 0).any()


def test_a_window_of_half_the_side_is_a_crop_twice_as_large():
    images = smooth(size=H)
    # The window from column 4 and row 10 on, 16 by 16 pixels.
    middle = ((4 + 8) / H * 2 - 1, (10 + 8) / H * 2 - 1)
    cropped = apply_changes(images, changes(batch=2, window=0.5, middle=middle))
    expected = F.resized_crop(images, 10, 4, 16, 16, [H, H], antialias=False)
    close(cropped[..., 1:-1, 1:-1], expected[..., 1:-1, 1:-1], atol=0.05)


def test_a_window_of_twice_the_side_shows_all_of_it_amid_black():
    images = smooth()
    changed = apply_changes(images, changes(batch=2, window=2.0))
    # Each pixel lies in the middle of four.
    close(changed[..., 16:48, 16:48], torch.nn.functional.avg_pool2d(images, 2))
    assert changed.sum().item() == pytest.approx(images.sum().item() / 4, rel=1e-4)


def test_what_a_crop_has_cut_off_does_not_come_back():
    images = torch.full((1, 3, 40, 40), 200.0)
    one = changes(batch=1, shift=(0.4, 0.0), window=1.25)
    changed = apply_changes(images, one)[0, 0, 20]
    # The shift leaves the left 80 % of the side lit, the window shows it from 10 to 74 %.
    lit = torch.nonzero(changed > 0).flatten()
    assert (lit[0].item(), lit[-1].item()) == (4, 29)


def test_the_steps_together_are_the_steps_one_after_another():
    """Against torchvision, which goes step by step and image by image."""
    images, size = smooth(batch=4, size=96), 96
    generator = torch.Generator().manual_seed(3)
    # Every kind of flip: a single one does not commute with a rotation.
    flips = torch.tensor([[1.0, 1], [-1, 1], [1, -1], [-1, -1]])
    drawn = Augmentation().draw(4, generator)._replace(flip=flips)
    changed = apply_changes(images, drawn)
    for k, image in enumerate(images):
        step = image
        if drawn.flip[k, 0] < 0:
            step = F.horizontal_flip(step)
        if drawn.flip[k, 1] < 0:
            step = F.vertical_flip(step)
        degrees = math.degrees(drawn.angle[k])
        step = F.rotate(step, -degrees, InterpolationMode.BILINEAR)
        right, down = (drawn.shift[k] * size / 2).tolist()
        middle = ((1 + drawn.middle[k]) * size / 2).tolist()
        step = F.affine(step, 0, [-right, -down], 1.0, [0], InterpolationMode.BILINEAR)
        # Zooms about the middle of the window and then brings it to the middle of the image.
        zoom = 1 / drawn.window[k].item()
        to_middle = [size / 2 - m for m in middle]
        step = F.affine(step, 0, to_middle, 1.0, [0], InterpolationMode.BILINEAR)
        step = F.affine(step, 0, [0, 0], zoom, [0], InterpolationMode.BILINEAR)
        inner = (slice(None), slice(30, 66), slice(30, 66))
        close(changed[k][inner], step[inner], atol=1.0)


def test_each_image_is_changed_by_its_own_parameters():
    images, drawn = pictures(5), Augmentation().draw(5, torch.Generator().manual_seed(0))
    together = apply_changes(images, drawn)
    for k in range(5):
        alone = apply_changes(images[k : k + 1], Changes(*(c[k : k + 1] for c in drawn)))
        torch.testing.assert_close(together[k : k + 1], alone)


def test_draws_fill_the_ranges_of_the_paper():
    drawn = Augmentation().draw(20_000, torch.Generator().manual_seed(0))
    assert drawn.flip.eq(-1).float().mean(0).tolist() == pytest.approx([0.5, 0.5], abs=0.02)
    degrees = drawn.angle.rad2deg()
    assert degrees.min() < -179
    assert 179 < degrees.max() <= 180.01
    assert degrees.abs().mean().item() == pytest.approx(90, abs=1.5)
    assert 0.09 < drawn.shift.abs().max() <= 0.1  # 5 % of the side, which is 2 long
    assert drawn.window.min().item() == pytest.approx(0.9, abs=1e-3)
    assert drawn.window.max().item() == pytest.approx(1.1, abs=1e-3)
    # A window within the image stays in it, and one around it holds all of it.
    share = drawn.middle / (1 - drawn.window).abs()[:, None]
    for kind in (share[drawn.window < 0.99], share[drawn.window > 1.01]):
        assert 0.99 < kind.abs().max() <= 1 + 1e-4
        assert kind.abs().mean().item() == pytest.approx(0.5, abs=0.01)
    together = torch.cat([drawn.flip, degrees[:, None], drawn.shift, drawn.window[:, None]], 1)
    correlation = np.corrcoef(together.numpy().T)
    assert np.abs(correlation - np.eye(6)).max() < 0.03


def test_draws_follow_from_the_generator_alone():
    before = torch.get_rng_state()
    first = Augmentation().draw(4, torch.Generator().manual_seed(5))
    second = Augmentation().draw(4, torch.Generator().manual_seed(5))
    other = Augmentation().draw(4, torch.Generator().manual_seed(6))
    assert torch.equal(first.angle, second.angle)
    assert not torch.equal(first.angle, other.angle)
    assert torch.equal(before, torch.get_rng_state())
