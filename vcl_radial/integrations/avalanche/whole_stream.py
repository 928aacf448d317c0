"""Training once on all experiences together, for methods that need the whole stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from avalanche.benchmarks.utils import concat_datasets
from avalanche.models.utils import avalanche_model_adaptation
from avalanche.training.supervised.joint_training import AlreadyTrainedError

from vcl_radial.methods.base import Method


class WholeStream:
    """Mixin for an Avalanche template whose `method` may need all experiences at once.

    Raises:
        AlreadyTrainedError: such a method is trained a second time.
    """

    method: Method
    experience: Any
    device: Any
    adapted_dataset: Any
    _experiences: tuple[Any, ...] = ()

    def train(self, experiences: Any, eval_streams: Any = None, **kwargs: Any) -> Any:
        """Train on experiences one after another, or on all of them at once."""
        if self.method.needs_whole_stream:
            if self._experiences:
                raise AlreadyTrainedError(
                    "the method learns all tasks at once: call train once, on the whole stream"
                )
            is_stream = isinstance(experiences, Iterable)
            self._experiences = tuple(experiences) if is_stream else (experiences,)
            eval_streams = [self._experiences] if eval_streams is None else eval_streams
            experiences = self._experiences[0]
        return super().train(experiences, eval_streams, **kwargs)  # type: ignore[misc]

    def train_dataset_adaptation(self, **kwargs: Any) -> None:
        """Take the data of the experience, or of all of them."""
        super().train_dataset_adaptation(**kwargs)  # type: ignore[misc]
        if len(self._experiences) > 1:
            joined = concat_datasets([experience.dataset for experience in self._experiences])
            self.adapted_dataset = joined.train()

    def model_adaptation(self, model: Any = None) -> Any:
        """Make the heads of the current experience, and of all that are trained at once."""
        model = super().model_adaptation(model)  # type: ignore[misc]
        for experience in self._experiences:
            avalanche_model_adaptation(model, experience)
        return model.to(self.device)
