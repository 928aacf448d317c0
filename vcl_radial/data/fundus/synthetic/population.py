"""Who is photographed: patients with two eyes of correlated grade, cameras and artefacts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from vcl_radial.errors import UserError

GRADE_SHARES: Final = (25810 / 35126, 2443 / 35126, 5292 / 35126, 873 / 35126, 708 / 35126)
"""Of the grades 0 to 4, as in the 35,126 graded photographs of Kaggle/EyePACS 2015."""

CAMERAS: Final = ("camera-a", "camera-b")
ARTEFACTS: Final = ("blur", "dark", "glare", "dust", "lashes")

_OF_THE_PATIENT = 0.85
"""Correlation of the severities of a patient's two eyes."""


@dataclass(frozen=True)
class SyntheticSettings:
    """What is generated.

    Attributes:
        patients: each with a left and a right eye.
        seed: of everything; the first patients are the same however many follow.
        artefacts: share of photographs with an artefact, whatever their grade.
        second_camera: share of patients who are photographed with the second camera.
    """

    patients: int = 500
    seed: int = 0
    artefacts: float = 0.15
    second_camera: float = 0.4

    def __post_init__(self) -> None:
        """Refuse what cannot be generated."""
        if self.patients < 1:
            raise UserError(f"patients = {self.patients} must be at least 1")
        if self.seed < 0:
            raise UserError(f"seed = {self.seed} must not be below 0")
        for name in ("artefacts", "second_camera"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} = {getattr(self, name)} must be a share from 0 to 1")


@dataclass(frozen=True)
class Subject:
    """One eye as it is photographed.

    Attributes:
        number: of the patient, from 0.
        eye: which of the two.
        grade: 0 to 4.
        severity: within the grade, from 0 to 1.
        camera: one of `CAMERAS`.
        artefact: one of `ARTEFACTS`, or "" for none.
        pigment: of the fundus, from 0 (fair) to 1 (dark); the same in both eyes.
        tortuosity: of the vessels, the same in both eyes.
    """

    number: int
    eye: Literal["left", "right"]
    grade: int
    severity: float
    camera: str
    artefact: str
    pigment: float
    tortuosity: float


def subjects(settings: SyntheticSettings) -> list[Subject]:
    """All eyes, the left one of a patient before the right one."""
    return [
        subject for number in range(settings.patients) for subject in _patient(settings, number)
    ]


def _patient(settings: SyntheticSettings, number: int) -> list[Subject]:
    rng = np.random.default_rng([settings.seed, number])
    shared, pigment, tortuosity = rng.normal(), rng.beta(2, 2.5), rng.gamma(16, 1 / 16)
    camera = CAMERAS[int(rng.random() < settings.second_camera)]
    eyes = []
    for eye in ("left", "right"):
        own = rng.normal()
        latent = math.sqrt(_OF_THE_PATIENT) * shared + math.sqrt(1 - _OF_THE_PATIENT) * own
        grade, severity = _graded(latent)
        # Both are drawn in any case, so that another share changes no other photograph.
        has_artefact, kind = rng.random() < settings.artefacts, rng.integers(len(ARTEFACTS))
        eyes.append(
            Subject(
                number=number,
                eye=eye,
                grade=grade,
                severity=severity,
                camera=camera,
                artefact=ARTEFACTS[kind] if has_artefact else "",
                pigment=pigment,
                tortuosity=tortuosity,
            )
        )
    return eyes


def _graded(latent: float) -> tuple[int, float]:
    """The grade of a standard normal severity, and how far into the grade it is."""
    rank = NormalDist().cdf(latent)
    for grade, share in enumerate(GRADE_SHARES):
        if rank < share or grade == len(GRADE_SHARES) - 1:
            return grade, min(rank / share, 1.0)
        rank -= share
    raise AssertionError
