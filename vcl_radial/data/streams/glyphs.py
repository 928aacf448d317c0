"""`glyphs`: characters of the fonts that come with matplotlib, distorted; no file is needed.

A hundred Latin, Greek and Cyrillic letters, figures and signs, each drawn 60 times in 16 fonts. A
drawing is turned by up to 15 degrees, sheared by up to 0.25, scaled by 0.7 to 1, and moved by up to
two pixels. All drawings come from one seed, so that they are the same in every run; another version
of Pillow or of the fonts may change single pixels. The fonts, DejaVu and STIX, have free licences.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vcl_radial.data.streams.image_data import ImageData

CHARACTERS = (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "abdefghijkmnqrtuy123456789"
    "ΓΔΘΛΞΠΣΦΨΩαβγδεζηθλμξπρσφψω"
    "БДЖЗИЛЦЧШЩЭЮЯ&@#%?€§ß"
)
"""The classes, without characters that look like another one, such as O and 0."""

_UPRIGHT = "", "-Bold"
_FACES = {
    "DejaVuSans": (*_UPRIGHT, "-Oblique", "-BoldOblique"),
    "DejaVuSansMono": (*_UPRIGHT, "-Oblique", "-BoldOblique"),
    "DejaVuSerif": (*_UPRIGHT, "-Italic", "-BoldItalic"),
    "STIXGeneral": ("", "Bol", "Italic", "BolIta"),
}
FONTS = tuple(family + face for family, faces in _FACES.items() for face in faces)

DRAWINGS, TESTED = 60, 15
"""Drawings of a character, and how many of them are test images."""

SIDE, CANVAS, INK = 28, 112, 72
"""Pixels of an image, of the canvas on which it is drawn, and of the letters there."""

SEED = 2020


@lru_cache(maxsize=1)
def load_glyphs() -> ImageData:
    """The drawings, 28x28 grey, bright on dark; of every four in turn the last is a test image."""
    random = np.random.default_rng(SEED)
    folder = _font_folder()
    fonts = [ImageFont.truetype(str(folder / f"{name}.ttf"), INK) for name in FONTS]
    images = np.stack(
        [
            _drawn(character, fonts[number % len(fonts)], random)
            for character in CHARACTERS
            for number in range(DRAWINGS)
        ]
    )
    x = torch.from_numpy(images)
    y = torch.arange(len(CHARACTERS)).repeat_interleave(DRAWINGS)
    # The order of fonts has the period 16, so that each fourth drawing would leave fonts out.
    number = torch.arange(len(y)) % DRAWINGS
    test = (number + number // len(FONTS)) % (DRAWINGS // TESTED) == DRAWINGS // TESTED - 1
    return ImageData("glyphs", x[~test], y[~test], x[test], y[test], tuple(CHARACTERS))


def _font_folder() -> Path:
    import matplotlib as mpl

    return Path(mpl.get_data_path()) / "fonts" / "ttf"


def _drawn(character: str, font: ImageFont.FreeTypeFont, random: Generator) -> NDArray[np.uint8]:
    """A drawing of a character, `[28, 28]`."""
    canvas = Image.new("L", (CANVAS, CANVAS))
    middle = CANVAS / 2
    box = font.getbbox(character)
    corner = middle - (box[0] + box[2]) / 2, middle - (box[1] + box[3]) / 2
    ImageDraw.Draw(canvas).text(corner, character, fill=255, font=font)
    angle = math.radians(random.uniform(-15, 15))
    shear, scale = random.uniform(-0.25, 0.25), random.uniform(0.7, 1.0)
    shift = random.uniform(-2, 2, size=2) * CANVAS / SIDE
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    # Pillow maps a pixel of the result to one of the canvas.
    back = turn @ np.array([[1.0, shear], [0.0, 1.0]]) / scale
    start = middle - back @ (middle + shift)
    rows = [(*row, offset) for row, offset in zip(back.tolist(), start.tolist(), strict=True)]
    moved = canvas.transform(
        canvas.size,
        Image.Transform.AFFINE,
        (*rows[0], *rows[1]),
        Image.Resampling.BILINEAR,
    )
    return np.asarray(moved.resize((SIDE, SIDE), Image.Resampling.BOX))
