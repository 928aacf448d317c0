"""What the tests of reports share."""

from pathlib import Path

import pytest

from vcl_radial import figures


@pytest.fixture
def no_pictures(monkeypatch):
    """Drawing takes most of a report's time; the names of the pictures are enough here."""

    def save(_figure, stem: Path) -> list[Path]:
        paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr(figures, "save", save)
