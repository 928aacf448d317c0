"""Photographs in memory whose brightness tells their class, for tests."""

import numpy as np
from PIL import Image

from vcl_radial.fundus import Normalisation, Photograph, Photographs, load_pixels, split_by_patient
from vcl_radial.referral.prepare import Prepared
from vcl_radial.referral.settings import Recipe


class Drawn:
    """Noise around a brightness for each row."""

    origin = "brightness"

    def __init__(self, bright):
        self.bright = bright

    def read(self, photograph, size):
        rng = np.random.default_rng([int(photograph.patient), photograph.eye == "left"])
        noise = rng.normal(self.bright[photograph.name], 12, (16, 16, 3))
        return Image.fromarray(noise.clip(30, 255).astype(np.uint8))

    def version(self, photograph):
        return str(self.bright[photograph.name])


def table(patients=40, shift=0, name="drawn"):
    """Healthy ones are dark and referable ones bright; every fifth one has an artefact."""
    rows, bright = [], {}
    for k in range(patients):
        for eye in ("left", "right"):
            image, grade = f"{k:03}_{eye}", 3 * (k % 2)
            bright[image] = (150 if grade else 90) + shift
            artefact = "dust" if k % 5 == 0 else ""
            rows.append(Photograph(image, f"{k:03}", eye, grade, "here", artefact=artefact))
    return Photographs(name, tuple(rows), Drawn(bright), notice="noise, drawn by a test")


def prepared(patients=40, shifted=False):
    data = load_pixels(table(patients), 16, crop=False, jobs=1, tell=lambda line: None)
    split = split_by_patient(data.photographs, validation=0.2, test=0.3)
    others = {}
    if shifted:
        other = table(8, shift=40, name="shifted")
        others["idrid"] = load_pixels(other, 16, crop=False, jobs=1, tell=lambda line: None)
    return Prepared(data, split, Normalisation.of(data, split.train), others)


def recipe(**keys):
    """A tiny network that learns fast."""
    start = {"channels": 2, "epochs": 3, "batch_size": 8, "learning_rate": 3e-3}
    return Recipe(**{**start, "eval_samples": 4, "validation_samples": 2, **keys})
