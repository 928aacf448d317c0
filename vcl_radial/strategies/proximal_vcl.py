"""`vcl_radial.methods.proximal_vcl` as an Avalanche strategy."""

from vcl_radial.methods import proximal_vcl
from vcl_radial.strategies.base import ContinualStrategy


class ProximalVCL(ContinualStrategy):
    """`ProximalVCL` as a strategy, which takes the same settings."""

    method_class = proximal_vcl.ProximalVCL
