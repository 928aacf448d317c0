"""Joint training: all tasks at once (an upper reference, not a continual learner)."""

from __future__ import annotations

from typing import Any

from avalanche.training.supervised import JointTraining

from vcl_radial.strategies.base import ContinualStrategy


class Joint(ContinualStrategy, JointTraining):
    """loss = mean NLL over the training points of all tasks; trained by one call on the stream."""

    needs_whole_stream = True

    def model_adaptation(self, model: Any = None) -> Any:
        """Make the heads of all tasks; before training, those of the experience at hand."""
        if not self._experiences:
            return super(JointTraining, self).model_adaptation(model)
        return super().model_adaptation(model)
