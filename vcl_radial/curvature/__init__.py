"""What a finished task leaves behind to second order: quadratic penalties, and their curvature."""

from vcl_radial.curvature.fisher import diagonal_fisher, fisher_directions, output_sensitivity
from vcl_radial.curvature.gauss_newton import linear_layers
from vcl_radial.curvature.kronecker import KroneckerFactors, KroneckerQuadratic, kronecker_factors
from vcl_radial.curvature.laplace import LaplaceMemory
from vcl_radial.curvature.quadratic import Quadratic, QuadraticMemory

__all__ = [
    "KroneckerFactors",
    "KroneckerQuadratic",
    "LaplaceMemory",
    "Quadratic",
    "QuadraticMemory",
    "diagonal_fisher",
    "fisher_directions",
    "kronecker_factors",
    "linear_layers",
    "output_sensitivity",
]
