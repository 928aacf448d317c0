"""Continual-learning methods, one file each: `from vcl_radial.strategies.vcl import VCL`."""

from typing import TYPE_CHECKING

from vcl_radial.lazy import attributes

if TYPE_CHECKING:
    from vcl_radial.strategies.base import ContinualStrategy
    from vcl_radial.strategies.scores import Scores
    from vcl_radial.strategies.task_model import TaskModel

__all__ = ["ContinualStrategy", "Scores", "TaskModel"]
__getattr__ = attributes(
    __name__,
    {"base": ("ContinualStrategy",), "scores": ("Scores",), "task_model": ("TaskModel",)},
)
