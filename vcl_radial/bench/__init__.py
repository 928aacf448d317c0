"""Measurements of speed and memory, one file per section; run by `vcl-radial bench`."""

from vcl_radial.bench.sections import SECTIONS
from vcl_radial.bench.timing import Spread, interleaved, ratios, rounds, spread

__all__ = ["SECTIONS", "Spread", "interleaved", "ratios", "rounds", "spread"]
