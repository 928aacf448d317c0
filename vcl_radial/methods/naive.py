"""Fine-tuning: train on each task in turn, without memory of past tasks (a lower reference)."""

from __future__ import annotations

from vcl_radial.methods.base import Method
from vcl_radial.nn.lane_step import LaneStep


class Naive(Method):
    """loss = mean NLL of the current task."""

    grows = True

    lane_step = LaneStep
