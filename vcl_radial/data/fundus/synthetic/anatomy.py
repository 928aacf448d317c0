"""A retina without disease: where disc and macula lie, and how the vessels grow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vessel = tuple[NDArray[np.float64], NDArray[np.float64]]
"""A path `[n, 2]` and the vessel's width along it `[n]`, in radii of the field."""

DISC_RADIUS = 0.135
"""A disc of 1.8 mm in a field of 45 degrees, which is about 13 mm wide."""

_STEP = 0.028
_THINNEST = 0.004


@dataclass(frozen=True)
class Anatomy:
    """One eye; lengths in radii of the field.

    Attributes:
        nasal: +1 where the disc lies to the right of the macula (a right eye), else -1.
        disc: centre of the optic disc.
        disc_radius: its mean radius.
        disc_stretch: its height over its width.
        cup: radius of the pale cup in it, as a share of the disc's.
        macula: centre of the macula.
        pigment: of the fundus, from 0 (fair) to 1 (dark).
        arteries: paths and widths.
        veins: paths and widths; thicker and darker.
    """

    nasal: int
    disc: tuple[float, float]
    disc_radius: float
    disc_stretch: float
    cup: float
    macula: tuple[float, float]
    pigment: float
    arteries: tuple[Vessel, ...]
    veins: tuple[Vessel, ...]


def grow(rng: np.random.Generator, eye: str, pigment: float, tortuosity: float) -> Anatomy:
    """Grow an eye.

    Args:
        rng: all its randomness.
        eye: "left" or "right".
        pigment: from 0 to 1.
        tortuosity: how much vessels wind; 1 is usual.
    """
    nasal = 1 if eye == "right" else -1
    shift = rng.normal(0, 0.05, 2)
    distance = rng.normal(0.69, 0.035)
    macula = (-0.14 * nasal + shift[0], 0.03 + shift[1])
    disc = (macula[0] + nasal * distance, macula[1] - rng.normal(0.06, 0.03))
    veins: list[Vessel] = []
    arteries: list[Vessel] = []
    for up in (-1, 1):
        for temporal in (True, False):
            # An artery and its vein run together.
            lean = rng.normal(0, 0.12)
            for kind, width, aside in ((arteries, 0.019, 0.05), (veins, 0.025, -0.05)):
                course = _Course(disc, macula, nasal, up, temporal, tortuosity)
                size = width * rng.uniform(0.85, 1.1) * (1.0 if temporal else 0.8)
                kind.extend(course.grow(rng, size, lean + aside + rng.normal(0, 0.05)))
    return Anatomy(
        nasal=nasal,
        disc=disc,
        disc_radius=DISC_RADIUS * rng.normal(1, 0.06),
        disc_stretch=rng.normal(1.1, 0.05),
        cup=float(np.clip(rng.normal(0.42, 0.1), 0.2, 0.75)),
        macula=macula,
        pigment=pigment,
        arteries=tuple(arteries),
        veins=tuple(veins),
    )


@dataclass(frozen=True)
class _Course:
    """Where the vessels of one quadrant are drawn to."""

    disc: tuple[float, float]
    macula: tuple[float, float]
    nasal: int
    up: int
    temporal: bool
    tortuosity: float

    def grow(self, rng: np.random.Generator, width: float, lean: float) -> list[Vessel]:
        """A trunk that leaves the disc, and all its branches."""
        steepness = 1.25 if self.temporal else 0.75
        outwards = -self.nasal if self.temporal else self.nasal
        heading = math.atan2(self.up * math.sin(steepness + lean), outwards * math.cos(steepness))
        start = (self.disc[0], self.disc[1] + 0.02 * self.up)
        vessels: list[Vessel] = []
        sprouts = [(start, heading, width, 0)]
        while sprouts:
            place, angle, thickness, order = sprouts.pop()
            vessel, budding = self._branch(rng, place, angle, thickness, order)
            if len(vessel[1]) > 2:
                vessels.append(vessel)
            sprouts += budding
        return vessels

    def _branch(
        self,
        rng: np.random.Generator,
        start: tuple[float, float],
        heading: float,
        width: float,
        order: int,
    ) -> tuple[Vessel, list[tuple[tuple[float, float], float, float, int]]]:
        longest = (90, 34, 20, 12)[order]
        wander = rng.normal(0, 0.11 * self.tortuosity, longest).tolist()
        chance = rng.random(longest).tolist()
        side = 1 if rng.random() < 0.5 else -1
        x, y = start
        bend = 0.0
        path, widths = [(x, y)], [width]
        sprouts: list[tuple[tuple[float, float], float, float, int]] = []
        since = 0
        for k in range(longest):
            bend = 0.75 * bend + wander[k]
            heading += bend * 0.6 + self._pull(x, y, heading, order)
            x += _STEP * math.cos(heading)
            y += _STEP * math.sin(heading)
            from_macula = math.hypot(x - self.macula[0], y - self.macula[1])
            if math.hypot(x, y) > 1.08 or from_macula < 0.11:
                break
            path.append((x, y))
            widths.append(width)
            width *= 0.993 if order == 0 else 0.975
            since += 1
            if order < 3 and since > 3 and chance[k] < (0.2, 0.17, 0.12)[order]:
                thinner = width * rng.uniform(0.5, 0.72)
                if thinner > _THINNEST:
                    turn = side * rng.uniform(0.5, 1.0)
                    sprouts.append(((x, y), heading + turn, thinner, order + 1))
                    heading -= 0.25 * turn
                    width *= 0.93
                    side, since = -side, 0
            if width < _THINNEST:
                break
        return (np.array(path), np.array(widths)), sprouts

    def _pull(self, x: float, y: float, heading: float, order: int) -> float:
        """How the heading turns within a step.

        Temporal trunks go around the macula in an arc, the others straight outwards; twigs inside
        the arc are drawn a little towards the macula, and those outside away from it.
        """
        dx, dy = x - self.macula[0], y - self.macula[1]
        distance = math.hypot(dx, dy)
        if self.temporal and order == 0:
            sense = self.up * self.nasal
            around = math.atan2(-dx, dy) if sense < 0 else math.atan2(dx, -dy)
            wanted = around + sense * min(max(distance - 0.6, -0.4), 0.4) * 1.3
            # Beyond the macula the arc opens.
            strength = 0.16 if -self.nasal * dx < 0.1 else 0.03
        elif order == 0:
            wanted = math.atan2(y - self.disc[1], x - self.disc[0])
            strength = 0.03
        else:
            wanted = math.atan2(dy, dx) if distance > 0.6 else math.atan2(-dy, -dx)
            strength = 0.035
        turn = (wanted - heading + math.pi) % (2 * math.pi) - math.pi
        return strength * turn
