"""Fine-tuning: train on each task in turn and do nothing about the past (a lower reference)."""

from __future__ import annotations

from vcl_radial.strategies.base import ContinualStrategy


class Naive(ContinualStrategy):
    """loss = mean NLL of the current task."""
