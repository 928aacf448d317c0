"""What disease, and harmless age, leave on a retina; more of it the higher the grade.

The signs follow the International Clinical Diabetic Retinopathy scale (Wilkinson et al. 2003):
grade 1 has microaneurysms only; 2 more than that, haemorrhages, hard exudates or cotton-wool spots;
3 haemorrhages in all quadrants; 4 new vessels or a preretinal haemorrhage, or the scars of their
laser treatment. Drusen and pigment spots come in every grade and mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vcl_radial.data.fundus.synthetic.anatomy import Anatomy, Vessel
from vcl_radial.data.fundus.synthetic.canvas import Canvas, Plane


@dataclass
class Lesions:
    """Planes of the canvas, 0 to 1, and new vessels.

    Attributes:
        blood: microaneurysms and haemorrhages.
        exudate: hard exudates, yellow and sharp.
        wool: cotton-wool spots, whitish and soft, over the vessels.
        drusen: pale and yellow, below the vessels.
        pigment: dark brown spots.
        vessels: new vessels, thin and winding.
    """

    blood: Plane
    exudate: Plane
    wool: Plane
    drusen: Plane
    pigment: Plane
    vessels: list[Vessel] = field(default_factory=list)


def lesions(
    rng: np.random.Generator, canvas: Canvas, anatomy: Anatomy, grade: int, severity: float
) -> Lesions:
    """Draw what an eye of this grade has, `severity` from 0 to 1 within the grade."""
    plane = canvas.plane
    found = Lesions(plane(), plane(), plane(), plane(), plane())
    draw = _Drawing(rng, canvas, anatomy, found)
    draw.harmless()
    if grade == 1:
        draw.microaneurysms(1 + rng.poisson(1 + 4 * severity))
    elif grade == 2:
        draw.microaneurysms(3 + rng.poisson(5 + 8 * severity))
        draw.haemorrhages(1 + rng.poisson(1 + 5 * severity))
        draw.exudates(rng.poisson(0.5 + severity))
        draw.cotton_wool(rng.poisson(0.3 + 0.6 * severity))
    elif grade == 3:
        draw.microaneurysms(8 + rng.poisson(14))
        draw.haemorrhages(12 + rng.poisson(8 + 10 * severity))
        draw.exudates(rng.poisson(1 + severity))
        draw.cotton_wool(1 + rng.poisson(1.5))
    elif grade == 4:
        draw.microaneurysms(rng.poisson(12))
        draw.haemorrhages(rng.poisson(8 + 8 * severity))
        draw.exudates(rng.poisson(1.0))
        draw.cotton_wool(rng.poisson(1.0))
        draw.proliferation(severity)
    return found


@dataclass
class _Drawing:
    rng: np.random.Generator
    canvas: Canvas
    anatomy: Anatomy
    found: Lesions

    def harmless(self) -> None:
        """Drusen in one eye of seven, a pigment spot in one of twelve."""
        rng = self.rng
        if rng.random() < 1 / 7:
            for _ in range(3 + rng.poisson(10)):
                place = self._near(self.anatomy.macula, 0.22)
                size, depth = rng.uniform(0.008, 0.022), rng.uniform(0.25, 0.6)
                self._blob(self.found.drusen, place, size, depth, softness=0.8)
        if rng.random() < 1 / 12:
            size = rng.uniform(0.03, 0.09)
            self._blob(self.found.pigment, self._anywhere(), size, 0.6, softness=0.5, rough=0.15)

    def microaneurysms(self, count: int) -> None:
        """Red dots of a few hundredths of a millimetre, mostly around the macula."""
        for _ in range(count):
            place = self._near(self.anatomy.macula, 0.38)
            size, depth = self.rng.uniform(0.006, 0.012), self.rng.uniform(0.6, 1)
            self._blob(self.found.blood, place, size, depth)

    def haemorrhages(self, count: int) -> None:
        """Dots and blots, and some flames along the nerve fibres."""
        rng = self.rng
        for _ in range(count):
            place = self._anywhere(0.85)
            size, depth = 0.010 + rng.gamma(2, 0.0055), rng.uniform(0.45, 1)
            if rng.random() < 0.25:
                along = np.arctan2(place[1] - self.anatomy.disc[1], place[0] - self.anatomy.disc[0])
                self._blob(
                    self.found.blood,
                    place,
                    size,
                    depth,
                    stretch=rng.uniform(2, 4),
                    angle=float(along),
                    rough=0.25,
                )
            else:
                self._blob(self.found.blood, place, size, depth, rough=0.18)

    def exudates(self, clusters: int) -> None:
        """Clusters of yellow specks with sharp rims, some of them rings."""
        rng = self.rng
        for _ in range(clusters):
            middle = self._near(self.anatomy.macula, 0.33)
            wide = rng.uniform(0.04, 0.14)
            ring = rng.random() < 0.4
            for _ in range(6 + rng.poisson(18)):
                turn = rng.uniform(0, 2 * np.pi)
                away = wide * (rng.normal(1, 0.12) if ring else np.sqrt(rng.random()))
                place = middle[0] + away * np.cos(turn), middle[1] + away * np.sin(turn)
                size = 0.005 + rng.gamma(2, 0.003)
                self._blob(self.found.exudate, place, size, rng.uniform(0.6, 1), rough=0.2)

    def cotton_wool(self, count: int) -> None:
        """Soft whitish patches, mostly near the large vessels."""
        rng = self.rng
        for _ in range(count):
            trunk = self.anatomy.veins[rng.integers(len(self.anatomy.veins))][0]
            on_it = trunk[rng.integers(len(trunk))]
            place = self._near((float(on_it[0]), float(on_it[1])), 0.07)
            size, depth = rng.uniform(0.022, 0.05), rng.uniform(0.5, 0.85)
            stretch, angle = rng.uniform(1, 1.8), rng.uniform(0, np.pi)
            self._blob(
                self.found.wool,
                place,
                size,
                depth,
                softness=0.8,
                stretch=stretch,
                angle=angle,
                rough=0.2,
            )

    def proliferation(self, severity: float) -> None:
        """New vessels; then often a preretinal haemorrhage, and laser scars in some."""
        rng = self.rng
        at_disc = rng.random() < 0.5
        tufts = 1 + rng.poisson(1 + severity)
        for k in range(tufts):
            if at_disc and k == 0:
                root, reach = self.anatomy.disc, 0.22
            else:
                root, reach = self._anywhere(0.7), 0.12
            for _ in range(10 + rng.poisson(8)):
                self.found.vessels.append(_curl(rng, root, reach))
        if rng.random() < 0.35 + 0.4 * severity:
            # Blood before the retina settles: a boat with a level top.
            place, size = self._near((0.0, 0.25), 0.25), rng.uniform(0.1, 0.22)
            boat = self.canvas.plane()
            self._blob(boat, place, size, 1.0, softness=0.12, stretch=1.7, rough=0.06)
            boat[self.canvas.y < place[1] - 0.15 * size] = 0
            np.maximum(self.found.blood, boat, out=self.found.blood)
        if rng.random() < 0.3:
            for _ in range(40 + rng.poisson(60)):
                turn, away = rng.uniform(0, 2 * np.pi), rng.uniform(0.62, 1.0)
                place = away * np.cos(turn), away * np.sin(turn)
                self._blob(self.found.drusen, place, 0.024, rng.uniform(0.4, 0.9), softness=0.4)
                self._blob(self.found.pigment, place, 0.011, rng.uniform(0.2, 0.8), softness=0.5)

    def _blob(
        self,
        plane: Plane,
        place: tuple[float, float],
        size: float,
        depth: float,
        *,
        softness: float = 0.3,
        stretch: float = 1.0,
        angle: float = 0.0,
        rough: float = 0.0,
    ) -> None:
        ripples = []
        if rough:
            waves = range(2, 5)
            ripples = [(rough * 2 / k, self.rng.uniform(0, 2 * np.pi)) for k in waves]
        self.canvas.add_blob(
            plane,
            place,
            size,
            depth,
            softness=softness,
            stretch=stretch,
            angle=angle,
            ripples=ripples,
        )

    def _near(self, middle: tuple[float, float], spread: float) -> tuple[float, float]:
        """A place about there, but not on the disc."""
        while True:
            x, y = (float(v) for v in self.rng.normal(middle, spread))
            if np.hypot(x, y) < 0.97 and self._off_disc(x, y):
                return x, y

    def _anywhere(self, within: float = 0.95) -> tuple[float, float]:
        while True:
            x, y = (float(v) for v in self.rng.uniform(-within, within, 2))
            if np.hypot(x, y) < within and self._off_disc(x, y):
                return x, y

    def _off_disc(self, x: float, y: float) -> bool:
        away = np.hypot(x - self.anatomy.disc[0], y - self.anatomy.disc[1])
        return bool(away > 1.15 * self.anatomy.disc_radius)


def _curl(rng: np.random.Generator, root: tuple[float, float], reach: float) -> Vessel:
    """A new vessel: thin, and winding as no healthy one does."""
    steps = rng.integers(10, 22)
    heading = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(0, 0.55, steps))
    start = np.asarray(root) + rng.normal(0, 0.25 * reach, 2)
    stride = reach / 9
    path = start + stride * np.cumsum(np.stack([np.cos(heading), np.sin(heading)], 1), axis=0)
    return path, np.full(steps, rng.uniform(0.005, 0.009))
