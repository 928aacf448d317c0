"""What `python -m benchmarks.speed` can measure; known without importing anything heavy."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from vcl_radial.described import described


@cache
def sections() -> dict[str, str]:
    """What each section measures, by its name."""
    return described(Path(__file__).parent, "measure")
