"""The papers' pictures, one file per figure; run by `vcl-radial analyse`."""

from vcl_radial.analyses.names import ANALYSES, GROUPS

__all__ = ["ANALYSES", "GROUPS"]
