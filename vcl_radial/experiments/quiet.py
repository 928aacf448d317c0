"""See `vcl_radial.quiet`."""

from vcl_radial.quiet import quiet

__all__ = ["quiet"]
