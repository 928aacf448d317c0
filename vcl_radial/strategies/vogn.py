"""`vcl_radial.methods.vogn` as an Avalanche strategy."""

from vcl_radial.methods import vogn
from vcl_radial.strategies.base import ContinualStrategy


class VOGN(ContinualStrategy):
    """`VOGN` as a strategy, which takes the same settings."""

    method_class = vogn.VOGN
