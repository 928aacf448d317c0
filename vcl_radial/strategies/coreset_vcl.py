"""`vcl_radial.methods.coreset_vcl` as an Avalanche strategy."""

from vcl_radial.methods import coreset_vcl
from vcl_radial.strategies.base import ContinualStrategy


class CoresetVCL(ContinualStrategy):
    """`CoresetVCL` as a strategy, which takes the same settings."""

    method_class = coreset_vcl.CoresetVCL
