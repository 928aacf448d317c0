"""How a retina becomes a photograph: light, lens, sensor, and what goes wrong with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from vcl_radial.data.fundus.synthetic.canvas import Canvas, Plane

Colours = NDArray[np.float32]
"""Red, green and blue from 0 to 1, `[3, S, S]`."""


@dataclass(frozen=True)
class Camera:
    """A make of camera; lengths in radii of its field.

    Attributes:
        gains: of the three channels.
        gamma: exponent from light to value.
        vignette: loss of light at the rim.
        blur: standard deviation of its point spread.
        noise: standard deviation of the sensor's noise.
        cut: how far from the middle the field is cut off above and below; 1 and more is not cut.
        notch: whether the rim has a notch.
    """

    gains: tuple[float, float, float]
    gamma: float
    vignette: float
    blur: float
    noise: float
    cut: float
    notch: bool


MAKES = {
    "camera-a": Camera((1.0, 0.96, 0.9), 0.82, 0.28, 0.004, 0.010, 1.1, True),
    "camera-b": Camera((1.0, 0.74, 0.52), 0.92, 0.5, 0.008, 0.018, 0.8, False),
}


def photograph(
    rng: np.random.Generator, canvas: Canvas, retina: Colours, make: Camera, artefact: str
) -> Image.Image:
    """Photograph a retina; with an artefact of `population.ARTEFACTS`, or "" for none."""
    # All that belongs to a sound photograph is drawn first: an artefact comes on top of it.
    tilt, exposure = rng.normal(0, 0.12, 2), rng.normal(1.0, 0.06)
    off = rng.normal(0, 0.03, 3)
    grain = rng.standard_normal(retina.shape, dtype=np.float32)
    light = 1 - make.vignette * np.square(canvas.radius) * 0.6
    light = exposure * (light + tilt[0] * canvas.x + tilt[1] * canvas.y)
    gains = (np.array(make.gains) * (1 + off)).astype(np.float32)
    values = retina * gains[:, None, None] * np.clip(light, 0.05, 1.6).astype(np.float32)

    blur, noise = make.blur, make.noise
    if artefact == "blur":
        blur += rng.uniform(0.02, 0.045)
    elif artefact == "dark":
        shade = rng.uniform(0.16, 0.36) * (1 + 0.3 * canvas.noise(rng, 2))
        values = values * np.clip(shade, 0.1, 1).astype(np.float32)
        noise *= 2
    elif artefact == "glare":
        values = _glare(rng, canvas, values)
    elif artefact == "dust":
        values = _dust(rng, canvas, values)
    elif artefact == "lashes":
        values = _lashes(rng, canvas, values)

    values = np.clip(values, 0, 1) ** np.float32(make.gamma)
    soft = ImageFilter.GaussianBlur(blur * canvas.pixels_per_unit)
    field = _field(canvas, make)
    channels = []
    for value, own_grain in zip(values, grain, strict=True):
        lens = Image.fromarray(_eight_bits(value)).filter(soft)
        sensed = np.asarray(lens, np.float32) / 255 + np.float32(noise) * own_grain
        channels.append(Image.fromarray(_eight_bits(sensed * field)))
    return Image.merge("RGB", channels)


def _field(canvas: Canvas, make: Camera) -> Plane:
    """1 where the camera sees something, with a rim of one pixel."""
    inside = 1 - canvas.radius
    inside = np.minimum(inside, make.cut - np.abs(canvas.y))
    if make.notch:
        corner = np.hypot(canvas.x - 0.74, canvas.y + 0.74)
        inside = np.maximum(inside, 0.05 - corner)
    field: Plane = np.clip(inside * canvas.pixels_per_unit + 0.5, 0, 1).astype(np.float32)
    return field


def _glare(rng: np.random.Generator, canvas: Canvas, values: Colours) -> Colours:
    """A crescent of stray light from the rim, and haze."""
    turn, wide = rng.uniform(0, 2 * np.pi), rng.uniform(0.4, 0.7)
    away = np.hypot(canvas.x - 1.15 * np.cos(turn), canvas.y - 1.15 * np.sin(turn))
    haze = 0.12 + rng.uniform(0.8, 1.1) * np.exp(-np.square(away / wide))
    stray = np.array([0.82, 0.84, 0.95], np.float32)[:, None, None]
    cover = np.clip(haze, 0, 0.97).astype(np.float32)
    hazy: Colours = values * (1 - cover) + stray * cover
    return hazy


def _dust(rng: np.random.Generator, canvas: Canvas, values: Colours) -> Colours:
    """Specks on the lens, bright and dark: some look like lesions."""
    bright, dark = canvas.plane(), canvas.plane()
    for _ in range(6 + rng.poisson(7)):
        turn, away = rng.uniform(0, 2 * np.pi), 0.95 * np.sqrt(rng.random())
        place = away * np.cos(turn), away * np.sin(turn)
        plane = bright if rng.random() < 0.5 else dark
        size, depth = 0.012 + rng.gamma(2, 0.01), rng.uniform(0.25, 0.6)
        canvas.add_blob(plane, place, size, depth, softness=rng.uniform(0.4, 1.0))
    pale = np.array([0.85, 0.85, 0.8], np.float32)[:, None, None]
    values = values * (1 - bright) + pale * bright
    return values * (1 - dark)


def _lashes(rng: np.random.Generator, canvas: Canvas, values: Colours) -> Colours:
    """A lid's shadow with eyelashes, from above or below."""
    side = 1 if rng.random() < 0.6 else -1
    strokes = []
    for _ in range(rng.integers(9, 20)):
        start, length = rng.uniform(-0.9, 0.9), rng.uniform(0.5, 1.0)
        lean, bow = rng.normal(0, 0.25), rng.normal(0, 0.2)
        along = np.linspace(0, 1, 9)
        path = np.stack([start + lean * along + bow * along**2, side * (1.05 - length * along)], 1)
        strokes.append((path, 0.035 * (1 - 0.8 * along)))
    soft = Image.fromarray(_eight_bits(canvas.strokes(strokes)))
    soft = soft.filter(ImageFilter.GaussianBlur(0.015 * canvas.pixels_per_unit))
    shade = 0.75 * np.asarray(soft, np.float32) / 255
    lid = 1 / (1 + np.exp(-(side * canvas.y - rng.uniform(0.45, 0.75)) / 0.12))
    kept = (1 - shade) * (1 - 0.8 * lid)
    shaded: Colours = values * kept.astype(np.float32)
    return shaded


def _eight_bits(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.round(np.clip(values, 0, 1) * 255).astype(np.uint8)
