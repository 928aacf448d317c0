"""`vcl_radial.methods.joint` as an Avalanche strategy."""

from vcl_radial.methods import joint
from vcl_radial.strategies.base import ContinualStrategy


class Joint(ContinualStrategy):
    """`Joint` as a strategy, which takes the same settings."""

    method_class = joint.Joint
