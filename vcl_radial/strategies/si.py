"""`vcl_radial.methods.si` as an Avalanche strategy."""

from vcl_radial.methods import si
from vcl_radial.strategies.base import ContinualStrategy


class SI(ContinualStrategy):
    """`SI` as a strategy, which takes the same settings."""

    method_class = si.SI
