"""The pictures behind the radial posterior, one file per figure; run by `vcl-radial analyse`."""

from vcl_radial.analyses.names import ANALYSES

__all__ = ["ANALYSES"]
