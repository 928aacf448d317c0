"""Quadratic memories of finished tasks: penalties, and the curvature that defines them."""

from vcl_radial.curvature.dense import DenseQuadratic
from vcl_radial.curvature.fisher import diagonal_fisher, output_sensitivity
from vcl_radial.curvature.gauss_newton import gauss_newton_matrix, linear_layers
from vcl_radial.curvature.kronecker import KroneckerFactors, KroneckerQuadratic, kronecker_factors
from vcl_radial.curvature.low_rank import LowRankQuadratic, gauss_newton_product
from vcl_radial.curvature.quadratic import Quadratic

__all__ = [
    "DenseQuadratic",
    "KroneckerFactors",
    "KroneckerQuadratic",
    "LowRankQuadratic",
    "Quadratic",
    "diagonal_fisher",
    "gauss_newton_matrix",
    "gauss_newton_product",
    "kronecker_factors",
    "linear_layers",
    "output_sensitivity",
]
