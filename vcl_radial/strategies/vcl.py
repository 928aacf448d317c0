"""`vcl_radial.methods.vcl` as an Avalanche strategy."""

from vcl_radial.methods import vcl
from vcl_radial.strategies.base import ContinualStrategy


class VCL(ContinualStrategy):
    """`VCL` as a strategy, which takes the same settings."""

    method_class = vcl.VCL
