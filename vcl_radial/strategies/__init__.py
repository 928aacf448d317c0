"""Methods as Avalanche strategies: `from vcl_radial.strategies.vcl import VCL`.

`vcl_radial.strategies.NAME` has the strategy of the method in `vcl_radial.methods.NAME`, and
`Strategy(method, ...)` drives any method.
"""

from vcl_radial.strategies.base import ContinualStrategy, Strategy
from vcl_radial.strategies.scores import Scores
from vcl_radial.strategies.task_model import TaskModel

__all__ = ["ContinualStrategy", "Scores", "Strategy", "TaskModel"]
