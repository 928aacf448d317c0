"""The papers' pictures, one file per figure; run by `vcl-radial analyse`."""

from vcl_radial.papers.names import ANALYSES, GROUPS

__all__ = ["ANALYSES", "GROUPS"]
