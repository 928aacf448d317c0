"""`vcl_radial.methods.ml_init_vcl` as an Avalanche strategy."""

from vcl_radial.methods import ml_init_vcl
from vcl_radial.strategies.base import ContinualStrategy


class MLInitVCL(ContinualStrategy):
    """`MLInitVCL` as a strategy, which takes the same settings."""

    method_class = ml_init_vcl.MLInitVCL
