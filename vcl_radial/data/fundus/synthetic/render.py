"""A subject's eye as a picture. It is a drawing, and no photograph of anybody."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from PIL import Image

from vcl_radial.data.fundus.synthetic.anatomy import Anatomy, grow
from vcl_radial.data.fundus.synthetic.camera import MAKES, Colours, photograph
from vcl_radial.data.fundus.synthetic.canvas import Canvas, Plane
from vcl_radial.data.fundus.synthetic.lesions import Lesions, lesions
from vcl_radial.data.fundus.synthetic.population import Subject

SMALLEST: Final = 256
"""Smaller pictures are drawn at this size first: lesions fade as they do in a photograph."""

_BLOOD = (0.42, 1.25, 1.0)
_PIGMENT = (0.7, 1.0, 0.7)
"""How strongly they take light from red, green and blue."""


def render(subject: Subject, seed: int, size: int) -> Image.Image:
    """Draw a subject, size by size pixels or larger.

    The eye, its lesions and the camera have randomness of their own: another camera or artefact
    shows the same eye.
    """
    source = np.random.SeedSequence([seed, subject.number, ("left", "right").index(subject.eye)])
    for_anatomy, for_lesions, for_retina, for_camera = map(np.random.default_rng, source.spawn(4))
    canvas = Canvas(max(size, SMALLEST))
    anatomy = grow(for_anatomy, subject.eye, subject.pigment, subject.tortuosity)
    disease = lesions(for_lesions, canvas, anatomy, subject.grade, subject.severity)
    retina = _retina(for_retina, canvas, anatomy, disease)
    return photograph(for_camera, canvas, retina, MAKES[subject.camera], subject.artefact)


def _retina(
    rng: np.random.Generator, canvas: Canvas, anatomy: Anatomy, disease: Lesions
) -> Colours:
    """Its colours in even white light."""
    pigment = anatomy.pigment
    ground = np.array([0.86, 0.44, 0.20]) * (1 - pigment * np.array([0.30, 0.42, 0.40]))
    mottle = 0.035 * canvas.noise(rng, 4) + 0.02 * canvas.noise(rng, 12)
    mottle += (0.012 + 0.02 * pigment) * canvas.noise(rng, 44)
    colours: Colours = ground.astype(np.float32)[:, None, None] * (1 + mottle)

    to_macula = np.hypot(canvas.x - anatomy.macula[0], canvas.y - anatomy.macula[1])
    dim = 0.42 * _bell(to_macula, 0.17) + 0.3 * _bell(to_macula, 0.05)
    _absorb(colours, dim, _PIGMENT)

    _cover(colours, disease.drusen, (0.93, 0.74, 0.40), 0.75)
    _cover(colours, disease.pigment, (0.16, 0.09, 0.06), 0.75)
    _cover(colours, disease.exudate, (0.99, 0.88, 0.47), 0.95)
    _draw_disc(canvas, colours, anatomy)

    # Vessels do not lie flat: close to the disc's middle they dive and fade.
    veins, arteries = canvas.strokes(anatomy.veins), canvas.strokes(anatomy.arteries)
    blood = np.maximum(0.62 * veins, 0.4 * arteries)
    blood = np.maximum(blood, 0.55 * canvas.strokes(disease.vessels))
    blood = np.maximum(blood, 0.95 * disease.blood)
    _absorb(colours, blood, _BLOOD)
    _cover(colours, disease.wool, (0.93, 0.86, 0.70), 0.85)
    return colours


def _draw_disc(canvas: Canvas, colours: Colours, anatomy: Anatomy) -> None:
    halo, disc, cup = canvas.plane(), canvas.plane(), canvas.plane()
    radius, stretch = anatomy.disc_radius, anatomy.disc_stretch
    middle = (anatomy.disc[0] - 0.15 * radius * anatomy.nasal, anatomy.disc[1])
    for plane, centre, size, depth, softness in (
        (halo, anatomy.disc, 1.5 * radius, 0.22, 0.7),
        (disc, anatomy.disc, radius, 1.0, 0.14),
        (cup, middle, anatomy.cup * radius, 1.0, 0.5),
    ):
        canvas.add_blob(
            plane, centre, size, depth, softness=softness, stretch=stretch, angle=math.pi / 2
        )
    _cover(colours, halo, (0.9, 0.6, 0.32), 1.0)
    _cover(colours, disc, (0.98, 0.74, 0.42), 0.9)
    _cover(colours, cup, (1.0, 0.92, 0.72), 0.85)


def _absorb(colours: Colours, plane: Plane, strength: tuple[float, float, float]) -> None:
    """Let light through something as dense as the plane says (Beer's law)."""
    for channel, of_channel in zip(colours, strength, strict=True):
        np.multiply(channel, np.exp(np.float32(-of_channel) * plane), out=channel)


def _cover(colours: Colours, plane: Plane, colour: tuple[float, float, float], most: float) -> None:
    """Lay a colour over others, as densely as the plane says."""
    if not plane.any():
        return
    share = np.float32(most) * plane
    for channel, value in zip(colours, colour, strict=True):
        np.add(channel, share * (np.float32(value) - channel), out=channel)


def _bell(distance: Plane, width: float) -> Plane:
    bell: Plane = np.exp(-0.5 * np.square(distance / np.float32(width)))
    return bell
