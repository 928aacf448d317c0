"""The drawn pictures as a table with a reader, as any folder of photographs has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Final

from PIL import Image

from vcl_radial.data.fundus.synthetic.population import Subject, SyntheticSettings, subjects
from vcl_radial.data.fundus.synthetic.render import render
from vcl_radial.data.fundus.table import Photograph, Photographs

SYNTHETIC_NOTICE: Final = "SYNTHETIC: pictures drawn by a generator, not photographs of patients"


class SyntheticReader:
    """Draws a picture where other readers open a file.

    Args:
        settings: of the generator.
        by_name: who is on a picture.
    """

    def __init__(self, settings: SyntheticSettings, by_name: Mapping[str, Subject]) -> None:
        self.settings, self.by_name = settings, by_name
        self.origin = f"generator {sorted(asdict(settings).items())}"

    def read(self, photograph: Photograph, size: int) -> Image.Image:
        """The picture, at least `size` pixels wide and high."""
        return render(self.by_name[photograph.name], self.settings.seed, size)

    def version(self, photograph: Photograph) -> str:
        """The subject and the generator's own text."""
        return f"{self.settings.seed} {self.by_name[photograph.name]} {_generator()}"


def synthetic_photographs(settings: SyntheticSettings | None = None) -> Photographs:
    """Generate patients; their pictures are drawn when they are read."""
    settings = settings or SyntheticSettings()
    by_name = {f"synthetic-{s.number:05}_{s.eye}": s for s in subjects(settings)}
    rows = tuple(
        Photograph(
            name=name,
            patient=f"synthetic-{subject.number:05}",
            eye=subject.eye,
            grade=subject.grade,
            site=subject.camera,
            artefact=subject.artefact,
        )
        for name, subject in by_name.items()
    )
    return Photographs(
        name="synthetic",
        rows=rows,
        reader=SyntheticReader(settings, by_name),
        notice=SYNTHETIC_NOTICE,
        synthetic=True,
    )


@lru_cache(maxsize=1)
def _generator() -> str:
    """What changes when the generator does: pictures of an older one are not to be mixed in."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
