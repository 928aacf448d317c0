"""`vcl_radial.methods.rdp_vcl` as an Avalanche strategy."""

from vcl_radial.methods import rdp_vcl
from vcl_radial.strategies.base import ContinualStrategy


class RDPVCL(ContinualStrategy):
    """`RDPVCL` as a strategy, which takes the same settings."""

    method_class = rdp_vcl.RDPVCL
