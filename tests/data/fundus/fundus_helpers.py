"""Photographs in memory, for tests."""

from collections import Counter

import numpy as np
from PIL import Image

from vcl_radial.data.decoding import Unreadable
from vcl_radial.data.fundus import Photograph, Photographs


class CountingReader:
    """Gives pictures from memory, and counts how often each was asked for."""

    def __init__(self, origin, pictures):
        self.origin, self.pictures = origin, pictures
        self.reads, self.versions = Counter(), {}

    def read(self, photograph, size):
        self.reads[photograph.name] += 1
        picture = self.pictures[photograph.name]
        if isinstance(picture, BaseException):
            raise picture
        return Image.fromarray(picture)

    def version(self, photograph):
        return self.versions.get(photograph.name, "1")


def noise_picture(seed, high=20, wide=24):
    return np.random.default_rng(seed).integers(40, 256, (high, wide, 3), dtype=np.uint8)


def table(patients=6, **options):
    """Patients of both eyes with noise for pictures."""
    names = [f"{k:02}_{eye}" for k in range(patients) for eye in ("left", "right")]
    reader = CountingReader("memory", {name: noise_picture(k) for k, name in enumerate(names)})
    rows = tuple(
        Photograph(name, name[:2], name[3:], k % 5, "here") for k, name in enumerate(names)
    )
    return Photographs("noise", rows, reader, **options)


def damaged():
    return Unreadable("image file is truncated")
