"""What a finished task leaves behind to second order: quadratic penalties, and their curvature."""

from vcl_radial.curvature.fisher import diagonal_fisher, output_sensitivity
from vcl_radial.curvature.quadratic import Quadratic, QuadraticMemory, parameters_in_use

__all__ = [
    "Quadratic",
    "QuadraticMemory",
    "diagonal_fisher",
    "output_sensitivity",
    "parameters_in_use",
]
