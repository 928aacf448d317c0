"""`vcl_radial.methods.single_task` as an Avalanche strategy."""

from vcl_radial.methods import single_task
from vcl_radial.strategies.base import ContinualStrategy


class SingleTask(ContinualStrategy):
    """`SingleTask` as a strategy, which takes the same settings."""

    method_class = single_task.SingleTask
