"""What a finished task leaves behind to second order: quadratic penalties, and their curvature."""

from vcl_radial.curvature.fisher import check_fisher, diagonal_fisher, output_sensitivity
from vcl_radial.curvature.gauss_newton import linear_layers
from vcl_radial.curvature.kronecker import KroneckerFactors, KroneckerQuadratic, kronecker_factors
from vcl_radial.curvature.quadratic import Quadratic

__all__ = [
    "KroneckerFactors",
    "KroneckerQuadratic",
    "Quadratic",
    "check_fisher",
    "diagonal_fisher",
    "kronecker_factors",
    "linear_layers",
    "output_sensitivity",
]
