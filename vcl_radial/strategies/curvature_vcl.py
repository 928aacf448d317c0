"""`vcl_radial.methods.curvature_vcl` as an Avalanche strategy."""

from vcl_radial.methods import curvature_vcl
from vcl_radial.strategies.base import ContinualStrategy


class CurvatureVCL(ContinualStrategy):
    """`CurvatureVCL` as a strategy, which takes the same settings."""

    method_class = curvature_vcl.CurvatureVCL
