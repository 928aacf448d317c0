"""Continual-learning methods, one file each: `from vcl_radial.strategies.vcl import VCL`."""

from vcl_radial.strategies.base import ContinualStrategy
from vcl_radial.strategies.scores import Scores
from vcl_radial.strategies.task_model import TaskModel

__all__ = ["ContinualStrategy", "Scores", "TaskModel"]
