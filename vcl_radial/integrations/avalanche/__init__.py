"""Methods as Avalanche strategies.

`Strategy(method, ...)` trains any method in Avalanche's loop, and `methods` has a class for each
method of the suite. A user's own strategy is a subclass of `ContinualStrategy`.
"""

from vcl_radial.integrations.avalanche.base import ContinualStrategy, Strategy
from vcl_radial.integrations.avalanche.scores import Scores
from vcl_radial.integrations.avalanche.task_model import TaskModel

__all__ = ["ContinualStrategy", "Scores", "Strategy", "TaskModel"]
