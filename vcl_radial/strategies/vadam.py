"""`vcl_radial.methods.vadam` as an Avalanche strategy."""

from vcl_radial.methods import vadam
from vcl_radial.strategies.base import ContinualStrategy


class VADAM(ContinualStrategy):
    """`VADAM` as a strategy, which takes the same settings."""

    method_class = vadam.VADAM
