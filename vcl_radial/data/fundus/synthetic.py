"""Synthetic fundus pictures, so that every command runs without data. They show no real person.

A patient has two eyes of correlated grade and is seen by one of two cameras. Lesions follow the
grade as in Wilkinson et al. (2003): 1 has microaneurysms only; 2 haemorrhages, exudates or
cotton-wool spots too; 3 haemorrhages all over; 4 new vessels, and often a large haemorrhage. Drusen
come in every grade and carry no information. A known share of pictures has an artefact of the
camera, which the table names, so that a score can show whether uncertainty detects the artefacts.

Lengths are in radii of the camera's field, which is the unit disc; x points to the right, y down.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFilter

from vcl_radial.data.fundus.table import Photograph, Photographs
from vcl_radial.errors import bad_value

SYNTHETIC_NOTICE: Final = "SYNTHETIC: pictures drawn by a generator, not photographs of patients"

GRADE_SHARES: Final = (25810 / 35126, 2443 / 35126, 5292 / 35126, 873 / 35126, 708 / 35126)
"""Shares of the grades 0 to 4 in the 35,126 graded photographs of Kaggle/EyePACS 2015."""

ARTEFACTS: Final = ("blur", "dark", "glare", "dust", "lashes")

SMALLEST: Final = 128
"""Smaller pictures are drawn at this size: lesions fade as they do in a photograph."""

_OF_THE_PATIENT: Final = 0.85
"""Correlation of the severities of a patient's two eyes."""
_HALF_WIDTH: Final = 1.04
"""Distance from the middle of a picture to its edge."""
_FINER: Final = 2
"""Pixels of a layer along an edge of one of the picture."""

Plane = NDArray[np.float32]
"""A value for each pixel, `[S, S]`; of three channels `[3, S, S]`."""
Point = NDArray[np.float64]
"""x and y, `[2]`."""


class Camera(NamedTuple):
    """A make of camera: its colours, light at the rim, sharpness and shape of the field."""

    gains: tuple[float, float, float]
    vignette: float
    blur: float
    noise: float
    cut: float
    notch: bool


CAMERAS: Final = {
    "camera-a": Camera((1.0, 0.96, 0.9), 0.17, 0.004, 0.010, 1.1, True),
    "camera-b": Camera((1.0, 0.74, 0.52), 0.3, 0.010, 0.018, 0.8, False),
}


@dataclass(frozen=True)
class SyntheticSettings:
    """Settings of the generator.

    Attributes:
        patients: number of patients, each with a left and a right eye.
        seed: seed of everything; the first patients do not depend on the number of patients.
        artefacts: share of photographs with an artefact, whatever their grade.
        second_camera: share of patients who are photographed with the second camera.
    """

    patients: int = 500
    seed: int = 0
    artefacts: float = 0.15
    second_camera: float = 0.4

    def __post_init__(self) -> None:
        """Reject impossible settings."""
        if self.patients < 1:
            raise bad_value("patients", self.patients, "must be at least 1")
        if self.seed < 0:
            raise bad_value("seed", self.seed, "must not be below 0")
        for name in ("artefacts", "second_camera"):
            if not 0 <= getattr(self, name) <= 1:
                raise bad_value(name, getattr(self, name), "must be a share from 0 to 1")


@dataclass(frozen=True)
class Subject:
    """An eye and how it is photographed.

    Attributes:
        number: number of the patient, from 0.
        eye: left or right eye.
        grade: 0 to 4.
        severity: within the grade, from 0 to 1.
        camera: one of `CAMERAS`.
        artefact: one of `ARTEFACTS`, or "" for none.
        pigment: pigment of the fundus, from 0 (fair) to 1 (dark); the same in both eyes.
    """

    number: int
    eye: Literal["left", "right"]
    grade: int
    severity: float
    camera: str
    artefact: str
    pigment: float


def subjects(settings: SyntheticSettings) -> list[Subject]:
    """All eyes, the left one of a patient before the right one."""
    eyes = []
    for number in range(settings.patients):
        rng = np.random.default_rng([settings.seed, number])
        shared, pigment = rng.normal(), rng.beta(2, 2.5)
        camera = tuple(CAMERAS)[int(rng.random() < settings.second_camera)]
        for eye in ("left", "right"):
            single = rng.normal()
            latent = math.sqrt(_OF_THE_PATIENT) * shared + math.sqrt(1 - _OF_THE_PATIENT) * single
            # Both are drawn in any case, so that another share changes no other photograph.
            has_artefact, kind = rng.random() < settings.artefacts, rng.integers(len(ARTEFACTS))
            artefact = ARTEFACTS[kind] if has_artefact else ""
            eyes.append(Subject(number, eye, *_graded(latent), camera, artefact, pigment))
    return eyes


def _graded(latent: float) -> tuple[int, float]:
    """The grade of a standard normal severity, and the severity within the grade, from 0 to 1."""
    rank, ends = NormalDist().cdf(latent), np.cumsum(GRADE_SHARES)
    grade = min(int(np.searchsorted(ends, rank, side="right")), len(GRADE_SHARES) - 1)
    return grade, float(np.clip(1 - (ends[grade] - rank) / GRADE_SHARES[grade], 0, 1))


def render(subject: Subject, seed: int, size: int) -> Image.Image:
    """Draw a subject, size by size pixels or larger.

    Eye, lesions and camera have separate random numbers: with another grade, camera or artefact the
    picture shows the same eye.
    """
    source = np.random.SeedSequence([seed, subject.number, ("left", "right").index(subject.eye)])
    for_eye, for_lesions, for_camera = map(np.random.default_rng, source.spawn(3))
    edge = max(size, SMALLEST)
    return _photograph(for_camera, subject, _retina(for_eye, for_lesions, subject, edge))


class _Layer:
    """Shapes of one colour on a finer raster, with densities from 0 to 1."""

    def __init__(self, edge: int) -> None:
        self.image = Image.new("L", (_FINER * edge, _FINER * edge))
        self._draw = ImageDraw.Draw(self.image)
        self._scale = _FINER * edge / (2 * _HALF_WIDTH)

    def dot(self, place: ArrayLike, radius: float, density: float, stretch: float = 1.0) -> None:
        x, y = (np.asarray(place) + _HALF_WIDTH) * self._scale
        wide, high = radius * self._scale * stretch, radius * self._scale
        self._draw.ellipse((x - wide, y - high, x + wide, y + high), round(255 * density))

    def line(self, path: NDArray[np.float64], width: float, density: float) -> None:
        points = [tuple(point) for point in ((path + _HALF_WIDTH) * self._scale).tolist()]
        pixels = width * self._scale
        self._draw.line(points, round(255 * density * min(1, pixels)), max(1, round(pixels)))

    def plane(self, blur: float = 0.0) -> Plane:
        soft = self.image.filter(ImageFilter.GaussianBlur(blur * self._scale))
        return np.asarray(soft.reduce(_FINER), np.float32) / np.float32(255)


def _places(edge: int) -> tuple[Plane, Plane]:
    """X and y of the middles of the pixels."""
    axis = ((np.arange(edge) + 0.5) / edge * 2 - 1) * _HALF_WIDTH
    x, y = np.meshgrid(axis.astype(np.float32), axis.astype(np.float32))
    return x, y


def _retina(
    for_eye: np.random.Generator, for_lesions: np.random.Generator, subject: Subject, edge: int
) -> Plane:
    """The colours of an eye in even white light."""
    nasal = 1 if subject.eye == "right" else -1
    macula = np.array([-0.14 * nasal, 0.03]) + for_eye.normal(0, 0.05, 2)
    disc = macula + for_eye.normal((0.67 * nasal, -0.06), 0.03)
    x, y = _places(edge)
    ground = np.array([0.86, 0.44, 0.20]) * (1 - subject.pigment * np.array([0.30, 0.42, 0.40]))
    mottle = 1 + 0.04 * _noise(for_eye, edge, 4) + 0.025 * _noise(for_eye, edge, 20)
    colours = ground.astype(np.float32)[:, None, None] * mottle
    distance = np.hypot(x - macula[0], y - macula[1])
    _absorb(colours, 0.6 * np.exp(-np.square(distance / 0.16)), (0.7, 1.0, 0.7))

    vessels, layers = _Layer(edge), {name: _Layer(edge) for name in ("blood", "yellow", "wool")}
    for path, width in _vessels(for_eye, disc, macula, nasal):
        vessels.line(path, width, 0.6)
    pale = _Layer(edge)
    pale.dot(disc, for_eye.normal(0.135, 0.008), 0.75, stretch=0.92)
    pale.dot(disc, for_eye.uniform(0.04, 0.08), 1.0)
    if for_eye.random() < 1 / 7:  # drusen
        for place in for_eye.normal(macula, 0.22, (3 + for_eye.poisson(8), 2)):
            layers["yellow"].dot(place, for_eye.uniform(0.01, 0.02), 0.3)
    if subject.grade:
        _lesions(for_lesions, subject, layers, vessels, macula, disc)
    _cover(colours, layers["yellow"].plane(), (0.99, 0.86, 0.45))
    _cover(colours, pale.plane(0.012), (1.0, 0.85, 0.58))
    _absorb(colours, np.maximum(vessels.plane(), layers["blood"].plane(0.003)), (0.5, 1.5, 1.2))
    _cover(colours, layers["wool"].plane(0.015), (0.95, 0.88, 0.72))
    return colours


def _vessels(
    rng: np.random.Generator, disc: Point, macula: Point, nasal: int
) -> list[tuple[NDArray[np.float64], float]]:
    """Paths and widths: an artery and a vein to each quadrant, around the macula, with branches."""
    vessels = []
    for up in (-1, 1):
        for temporal in (True, False):
            for width in (0.022, 0.03):
                away = -nasal if temporal else nasal
                bend = disc + rng.normal((0.12 * away, 0.62 * up), 0.06)
                end = macula + rng.normal((-0.75 * nasal, 0.45 * up), 0.08)
                if not temporal:
                    end = disc + rng.normal((0.45 * nasal, 0.85 * up), 0.1)
                trunk = _curve(rng, disc, bend, end)
                vessels.append((trunk, width))
                for start in trunk[[5, 8, 11, 14]] if temporal else trunk[[5, 9]]:
                    outwards = (start - macula) * rng.normal(0.45, 0.1) * rng.choice((-0.7, 1))
                    side = rng.normal(0, 0.12, 2)
                    branch = _curve(rng, start, start + outwards / 2 + side, start + outwards)
                    vessels.append((branch, 0.5 * width))
    return vessels


def _curve(rng: np.random.Generator, start: Point, bend: Point, end: Point) -> Point:
    """A quadratic Bezier curve of 17 points that winds a little, `[17, 2]`."""
    t = np.linspace(0, 1, 17)[:, None]
    winding = 0.012 * np.sin(rng.uniform(8, 16) * t + rng.uniform(0, 6)) * t
    curve: Point = (1 - t) ** 2 * start + 2 * t * (1 - t) * bend + t**2 * end + winding
    return curve


def _lesions(
    rng: np.random.Generator,
    subject: Subject,
    layers: Mapping[str, _Layer],
    vessels: _Layer,
    macula: Point,
    disc: Point,
) -> None:
    """Draw the lesions of a disease: more for a higher grade and severity."""
    s, blood = subject.severity, layers["blood"]
    dots, blots, clusters, wool = {
        1: (2 + 4 * s, 0, 0, 0),
        2: (6 + 6 * s, 4 + 5 * s, 1 + s, 0.5 + s),
        3: (16 + 6 * s, 18 + 8 * s, 1 + s, 2),
        4: (12, 12 + 8 * s, 1, 1),
    }[subject.grade]
    for place in rng.normal(macula, 0.38, (1 + rng.poisson(dots), 2)):
        blood.dot(place, rng.uniform(0.010, 0.018), rng.uniform(0.7, 1))
    for _ in range(rng.poisson(blots)):
        size, stretch = 0.016 + rng.gamma(2, 0.008), rng.choice((1, 1, 2.2))
        blood.dot(_anywhere(rng, 0.85), size, rng.uniform(0.6, 1), stretch)
    for _ in range(rng.poisson(clusters)):
        middle, wide = rng.normal(macula, 0.33), rng.uniform(0.04, 0.12)
        for place in rng.normal(middle, wide, (8 + rng.poisson(14), 2)):
            layers["yellow"].dot(place, 0.006 + rng.gamma(2, 0.004), rng.uniform(0.7, 1))
    for _ in range(rng.poisson(wool)):
        layers["wool"].dot(_anywhere(rng, 0.7), rng.uniform(0.03, 0.06), 0.8, rng.uniform(1, 1.6))
    if subject.grade == 4:
        for root in (disc, *(_anywhere(rng, 0.7) for _ in range(1 + rng.poisson(1 + s)))):
            for _ in range(8):  # new vessels wind as no others do
                turns = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(0, 0.6, 14))
                steps = np.stack([np.cos(turns), np.sin(turns)], 1)
                vessels.line(root + 0.018 * np.cumsum(steps, 0), 0.01, 0.9)
        if rng.random() < 0.35 + 0.4 * s:
            blood.dot(rng.normal((0, 0.25), 0.2), rng.uniform(0.08, 0.16), 1.0, 1.8)


def _anywhere(rng: np.random.Generator, within: float) -> Point:
    turn, away = rng.uniform(0, 2 * np.pi), within * math.sqrt(rng.random())
    return np.array([away * np.cos(turn), away * np.sin(turn)])


def _photograph(rng: np.random.Generator, subject: Subject, retina: Plane) -> Image.Image:
    """A camera's picture of a retina, with the subject's artefact if there is one."""
    make, edge = CAMERAS[subject.camera], retina.shape[-1]
    x, y = _places(edge)
    radius = np.hypot(x, y)
    # Draw the random numbers of a sound photograph first, so that an artefact does not change them.
    tilt, exposure, hue = rng.normal(0, 0.12, 2), rng.normal(1, 0.06), rng.normal(1, 0.03, 3)
    grain = make.noise * rng.standard_normal(retina.shape, dtype=np.float32)
    light = exposure * (1 - make.vignette * radius**2 + tilt[0] * x + tilt[1] * y)
    gains = (np.array(make.gains) * hue).astype(np.float32)[:, None, None]
    values, blur = retina * gains * light.clip(0.05, 1.6), make.blur
    if subject.artefact == "blur":
        blur += rng.uniform(0.025, 0.05)
    elif subject.artefact == "dark":
        values, grain = values * np.float32(rng.uniform(0.16, 0.36)), 2 * grain
    elif subject.artefact == "glare":
        turn = rng.uniform(0, 2 * np.pi)
        away = np.hypot(x - 1.15 * np.cos(turn), y - 1.15 * np.sin(turn))
        haze = 0.12 + 0.85 * np.exp(-np.square(away / rng.uniform(0.4, 0.7)))
        _cover(values, haze.astype(np.float32), (0.82, 0.84, 0.95))
    elif subject.artefact == "dust":
        specks = (_Layer(edge), _Layer(edge))
        for _ in range(8 + rng.poisson(7)):
            size, density = 0.015 + rng.gamma(2, 0.01), rng.uniform(0.35, 0.7)
            specks[rng.integers(2)].dot(_anywhere(rng, 0.95), size, density)
        _cover(values, specks[0].plane(0.01), (0.85, 0.85, 0.8))
        _cover(values, specks[1].plane(0.01), (0.0, 0.0, 0.0))
    elif subject.artefact == "lashes":
        lashes, side = _Layer(edge), rng.choice((-1, 1))
        for start, lean, length in rng.uniform((-0.9, -0.3, 0.5), (0.9, 0.3, 1), (14, 3)):
            path = np.array([[start, 1.05 * side], [start + lean, side * (1.05 - length)]])
            lashes.line(path, 0.03, 0.75)
        lid = 0.8 / (1 + np.exp((rng.uniform(0.45, 0.75) - side * y) / 0.12))
        _cover(values, np.maximum(lashes.plane(0.015), lid), (0.0, 0.0, 0.0))
    inside = np.minimum(1 - radius, make.cut - abs(y))
    if make.notch:
        inside = np.maximum(inside, 0.05 - np.hypot(x - 0.74, y + 0.74))
    field = np.clip(inside * edge / (2 * _HALF_WIDTH) + 0.5, 0, 1)
    soft = ImageFilter.GaussianBlur(blur * edge / (2 * _HALF_WIDTH))
    seen = np.asarray(_picture(values**0.85).filter(soft), np.float32).transpose(2, 0, 1) / 255
    return _picture((seen + grain) * field)


def _picture(values: Plane) -> Image.Image:
    return Image.fromarray(np.rint(255 * values.clip(0, 1)).astype(np.uint8).transpose(1, 2, 0))


def _noise(rng: np.random.Generator, edge: int, cells: int) -> Plane:
    """Smooth noise of about unit variance, with `cells` cells along an edge."""
    coarse = Image.fromarray(rng.standard_normal((cells, cells), dtype=np.float32))
    return np.float32(1.35) * np.asarray(coarse.resize((edge, edge), Image.Resampling.BICUBIC))


def _absorb(colours: Plane, density: Plane, strength: tuple[float, float, float]) -> None:
    """Absorb light in a layer of this density (Beer's law)."""
    colours *= np.exp(-np.array(strength, np.float32)[:, None, None] * density)


def _cover(colours: Plane, density: Plane, colour: tuple[float, float, float]) -> None:
    """Cover other colours with a colour of this density."""
    colours += density * (np.array(colour, np.float32)[:, None, None] - colours)


class SyntheticReader:
    """Draws a picture where other readers open a file.

    Args:
        settings: settings of the generator.
        by_name: subjects by the names of their pictures.
    """

    def __init__(self, settings: SyntheticSettings, by_name: Mapping[str, Subject]) -> None:
        self.settings, self.by_name = settings, by_name
        self.origin = f"generator {sorted(asdict(settings).items())}"

    def read(self, photograph: Photograph, size: int) -> Image.Image:
        """The picture, at least `size` pixels wide and high."""
        return render(self.by_name[photograph.name], self.settings.seed, size)

    def version(self, photograph: Photograph) -> str:
        """The subject and the generator's text."""
        return f"{self.settings.seed} {self.by_name[photograph.name]} {_generator()}"


@lru_cache(maxsize=1)
def _generator() -> str:
    """Digest of the generator's code, so that pictures of an older generator are not reused."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]


def synthetic_photographs(settings: SyntheticSettings | None = None) -> Photographs:
    """Generate patients; their pictures are drawn when they are read."""
    settings = settings or SyntheticSettings()
    by_name = {f"synthetic-{s.number:05}_{s.eye}": s for s in subjects(settings)}
    rows = tuple(
        Photograph(name, name.partition("_")[0], s.eye, s.grade, site=s.camera, artefact=s.artefact)
        for name, s in by_name.items()
    )
    reader = SyntheticReader(settings, by_name)
    return Photographs("synthetic", rows, reader, notice=SYNTHETIC_NOTICE, synthetic=True)
