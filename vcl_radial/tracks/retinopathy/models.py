"""The model that a run on photographs keeps, which predicts folders of photographs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.backbones import LITE0
from vcl_radial.data.decoding import Unreadable
from vcl_radial.data.fundus import Normalisation
from vcl_radial.data.fundus.features import FeatureNormalisation, photograph_backbone
from vcl_radial.data.fundus.files import read_photograph
from vcl_radial.data.fundus.prepare import squared
from vcl_radial.errors import DataError
from vcl_radial.models.format import training_points
from vcl_radial.models.inputs import Batch, Form, read_inputs
from vcl_radial.models.model import Model
from vcl_radial.tracks.retinopathy.execute import EpochTraining
from vcl_radial.tracks.retinopathy.prediction import EVAL_BATCH, referable_log_probabilities
from vcl_radial.tracks.retinopathy.settings import Run
from vcl_radial.tracks.retinopathy.training import derived, trained_method

CLASSES = ("healthy", "referable")


class PhotographModel(Model):
    """A model of photographs; its raw inputs are squares `[N, 3, size, size]` of `prepare`."""

    def read(self, data: str, data_dir: Path | None = None) -> Iterator[Batch]:
        """Read photographs from a folder, and prepare them as those of the training."""
        about = self.card["input"]
        keys = {key: about[key] for key in ("size", "crop", "normalise")}
        return read_inputs(
            data, Form(tuple(about["shape"]), decode=partial(_square, **keys)), data_dir
        )

    @property
    def batch_size(self) -> int:
        """Photographs that are predicted together, at most a training batch."""
        return min(int(self.card["spec"]["recipe"]["batch_size"]), EVAL_BATCH)

    def scaled(self, x: Tensor) -> Tensor:
        """Normalise the colours as in training."""
        scaling = map(tuple, self.card["input"]["scaling"])
        if self.card["spec"]["recipe"]["network"] == LITE0:
            with torch.no_grad():
                features = self._features(x.cpu()).to(x.device)
            return FeatureNormalisation(*scaling)(features)
        x = Normalisation(*scaling)(x)
        return x.contiguous(memory_format=torch.channels_last)

    @cached_property
    def _features(self) -> Callable[[Tensor], Tensor]:
        """The features of a network that is held."""
        return photograph_backbone().load()

    @torch.no_grad()
    def _log_draws(self, x: Tensor, number: int | None) -> Tensor:
        method, seed = self.method, derived(self.card["spec"]["seed"], "prediction", 0)
        with method.using(method.predictor(number)):
            outputs = method.draws(x, samples=method.eval_samples, seed=seed)
        return self.log_probabilities(outputs)

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """Log-probabilities of healthy and referable, `[S, N, 2]`, from all levels' outputs."""
        return referable_log_probabilities(outputs.float().log_softmax(-1))


def _square(path: Path, **keys: Any) -> NDArray[np.uint8]:
    """The square `[3, size, size]` of a photograph.

    Raises:
        DataError: the photograph cannot be read.
    """
    try:
        picture = read_photograph(path, keys["size"])
    except Unreadable as why:
        raise DataError(f"cannot be read as an image ({why}): copy it again", at=path) from None
    return squared(picture, **keys).transpose(2, 0, 1)


def kept(training: EpochTraining) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The card and the state of a finished run; None for one scored on validation data."""
    run, last = training.run, training.trained_on[-1]
    if run.evaluate_on != "test":
        return None
    size, scaling = last.data.size, last.normalisation
    state = training.trainer.states[-1]
    card = {
        "input": {
            "shape": [3, size, size],
            "scaling": [scaling.mean, scaling.std],
            "size": size,
            "crop": run.data.crop,
            "normalise": run.data.normalise,
        },
        "tasks": [{"name": site.name, "head": 0} for site in training.sites],
        "heads": [CLASSES],
        "multi_head": False,
        "training_points": training_points(state),
    }
    return card, state


def restored(run: Run, card: Mapping[str, Any], state: dict[str, Any]) -> PhotographModel:
    """The model of a folder.

    Raises:
        UserError: the method cannot be made, or the state does not fit it.
    """
    return PhotographModel(card, trained_method(run.recipe, card["input"]["size"], state, "cpu"))
