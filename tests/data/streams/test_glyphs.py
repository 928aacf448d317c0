import torch

from vcl_radial.data.streams import load_dataset
from vcl_radial.data.streams.glyphs import CHARACTERS, DRAWINGS, FONTS, TESTED, load_glyphs


def test_every_character_is_drawn_equally_often_in_both_parts():
    data = load_dataset("glyphs")
    assert len(set(CHARACTERS)) == len(CHARACTERS) == data.n_classes == 100
    assert (torch.bincount(data.train_y) == DRAWINGS - TESTED).all()
    assert (torch.bincount(data.test_y) == TESTED).all()
    number = torch.arange(DRAWINGS)
    tested = (number + number // len(FONTS)) % 4 == 3
    assert len(set((number[tested] % len(FONTS)).tolist())) >= TESTED - 1  # nearly every font


def test_the_drawings_are_the_same_every_time():
    first = load_glyphs()
    load_glyphs.cache_clear()
    assert load_glyphs().checksum == first.checksum
    assert load_glyphs() is not first


def test_every_drawing_has_ink_within_its_frame():
    images = load_dataset("glyphs").train_x.float()
    assert (images.amax((1, 2)) > 150).all()
    frame = torch.ones(28, 28, dtype=torch.bool)
    frame[1:-1, 1:-1] = False
    assert images[:, frame].mean() < 1  # of 255


def test_drawings_are_told_apart_by_their_nearest_neighbour():
    """Pixels alone find the character about 40 times as often as chance does."""
    data = load_dataset("glyphs")
    train, test = (x.flatten(1).float() for x in (data.train_x, data.test_x))
    nearest = torch.cdist(test, train).argmin(1)
    assert (data.train_y[nearest] == data.test_y).double().mean() > 0.3
