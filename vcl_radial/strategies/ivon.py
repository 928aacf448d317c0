"""`vcl_radial.methods.ivon` as an Avalanche strategy."""

from vcl_radial.methods import ivon
from vcl_radial.strategies.base import ContinualStrategy


class IVON(ContinualStrategy):
    """`IVON` as a strategy, which takes the same settings."""

    method_class = ivon.IVON
