"""Joint training: all tasks at once (an upper reference, not a continual learner)."""

from __future__ import annotations

from vcl_radial.methods.base import Method


class Joint(Method):
    """loss = mean NLL over the training points of all tasks, which are trained as one task."""

    carries = "nothing: it trains once, on the points of all tasks"
    needs_whole_stream = True
