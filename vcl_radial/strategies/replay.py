"""`vcl_radial.methods.replay` as an Avalanche strategy."""

from vcl_radial.methods import replay
from vcl_radial.strategies.base import ContinualStrategy


class Replay(ContinualStrategy):
    """`Replay` as a strategy, which takes the same settings."""

    method_class = replay.Replay
