"""`vcl_radial.methods.frozen_body` as an Avalanche strategy."""

from vcl_radial.methods import frozen_body
from vcl_radial.strategies.base import ContinualStrategy


class FrozenBody(ContinualStrategy):
    """`FrozenBody` as a strategy, which takes the same settings."""

    method_class = frozen_body.FrozenBody
