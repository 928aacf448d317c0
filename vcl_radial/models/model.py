"""A kept model: predictions, uncertainty and the posterior, from raw inputs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn

from vcl_radial.data.backbones import PRETRAINING
from vcl_radial.errors import DataError, UserError, bad_value
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import check_inputs
from vcl_radial.metrics.referral import entropy
from vcl_radial.models.arrays import check_scale, real_numbers, usable_device
from vcl_radial.models.posterior import Layer, layers
from vcl_radial.nn.shared_inputs import shared_inputs

if TYPE_CHECKING:
    from vcl_radial.models.inputs import Batch

BATCH = 4096
"""Largest number of inputs that are predicted together; predictions do not depend on it."""


class _Input(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    shape: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    scaling: list[Any] | None
    permuted: bool = False
    lowest: float | None = None


class _Task(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    name: str
    head: Annotated[int, Field(ge=0)]


class _Card(BaseModel):
    """The keys of a card that predictions read; it may hold more."""

    model_config = ConfigDict(extra="allow", strict=True)

    input: _Input
    tasks: Annotated[list[_Task], Field(min_length=1)]
    heads: Annotated[list[list[str]], Field(min_length=1)]

    @model_validator(mode="after")
    def _heads_are_there(self) -> _Card:
        if any(task.head >= len(self.heads) for task in self.tasks):
            raise ValueError("a task has a head that is not there")
        if len({len(names) for names in self.heads}) > 1:
            raise ValueError("the heads differ in their number of outputs")
        return self


class Uncertainty(NamedTuple):
    """The uncertainty of predictions in nats, each `[N]`; see `Model.uncertainty`."""

    entropy: Tensor
    mutual_information: Tensor
    expected_entropy: Tensor


class Assessment(NamedTuple):
    """Tasks (from 0) `[N]`, probabilities `[N, C]` of their heads' classes, and uncertainty."""

    tasks: Tensor
    probabilities: Tensor
    uncertainty: Uncertainty


class Model:
    """A method after its last task, which predicts classes from raw inputs.

    Args:
        card: what is known of the model.
        method: the method with the kept state.

    Raises:
        ValueError, TypeError: a key of the card is missing or wrong.
    """

    def __init__(self, card: Mapping[str, Any], method: Method) -> None:
        _Card.model_validate(dict(card))
        self.card, self.method = card, method
        if card["input"]["scaling"] is not None:
            self.scaled(torch.zeros(1, *card["input"]["shape"]))

    @property
    def network(self) -> nn.Module:
        """The network with its posterior."""
        return self.method.network

    @property
    def tasks(self) -> Sequence[str]:
        """The names of the tasks in order."""
        return [task["name"] for task in self.card["tasks"]]

    @property
    def classes(self) -> Sequence[Sequence[str]]:
        """The names of the outputs of every head, in order."""
        return list(self.card["heads"])

    @property
    def posterior(self) -> dict[str, Layer]:
        """The posterior of the weights by layer; empty where the method keeps none."""
        return layers(self.method)

    def to(self, device: str | torch.device) -> Self:
        """Compute on another device from now on; returns this model.

        Raises:
            UserError: this machine has no such device.
        """
        found, state = usable_device(device), self.method.state_dict()
        self.network.to(found)
        self.method.load_state_dict(state)
        return self

    def predict(self, x: Any, task: int | str | None = None) -> Tensor:
        """The predictive p(y | x), probabilities `[N, C]`.

        Args:
            x: raw inputs `[N, ...]`, an array, tensor, data frame or list of real numbers; for a
                task of permuted pixels, in the order of the task. A model that learned from
                features of a network takes images, or their features `[N, D]`.
            task: number (from 0) or name of the task; None: `infer` finds it for every input.

        Raises:
            UserError: there is no such task.
            DataError: the inputs have another shape, are not finite, or far too large.
        """
        return self.assess(x, task).probabilities

    def infer(self, x: Any) -> Tensor:
        """The task (from 0) of every input `[N]`: that of the head of the least entropy."""
        return self.assess(x).tasks

    def assess(self, x: Any, task: int | str | None = None) -> Assessment:
        """Tasks, probabilities and uncertainty in one pass; see `predict` and `uncertainty`."""
        number = None if task is None else self.number(task)
        infers = task is None and len(self.card["heads"]) > 1
        candidates = range(len(self.tasks)) if infers else [number]
        parts = []
        for part in self._batches(x):
            by_task = [self._assess(part, candidate) for candidate in candidates]
            probs, *uncertainty = map(torch.stack, zip(*by_task, strict=True))
            if not uncertainty[0].isfinite().all():
                raise DataError("gives predictions that are not numbers", at="x")
            best = uncertainty[0].argmin(0)
            rows = torch.arange(len(part), device=best.device)
            parts.append([best + (number or 0), *(t[best, rows] for t in (probs, *uncertainty))])
        tasks, probs, *uncertainty = map(torch.cat, zip(*parts, strict=True))
        return Assessment(tasks, probs, Uncertainty(*uncertainty))

    def draws(
        self,
        x: Any,
        samples: int | None = None,
        seed: int | None = None,
        task: int | str | None = None,
    ) -> Tensor:
        """Outputs `[S, N, C]` under draws of the weights that depend on the seed alone.

        Raises:
            UserError: there is no such task, none is given and there are many heads, or the number
                of samples or the seed is impossible.
            DataError: the inputs have another shape, or are not finite.
        """
        for key, value, least in (("samples", samples, 1), ("seed", seed, 0)):
            if value is not None and not (isinstance(value, Integral) and least <= value < 2**63):
                raise bad_value(key, value, f"must be a whole number from {least}")
        if task is None and len(self.card["heads"]) > 1:
            raise bad_value(
                "task", task, f"must be one of 0 to {len(self.tasks) - 1}: each has a head"
            )
        number = None if task is None else self.number(task)
        with torch.no_grad(), self.method.using(self.method.predictor(number)):
            outputs = [
                self.method.draws(part, self.head(number), samples=samples, seed=seed)
                for part in self._batches(x)
            ]
        return torch.cat(outputs, 1)

    def uncertainty(self, x: Any, task: int | str | None = None) -> Uncertainty:
        """How uncertain the predictions are, in nats; without a task, that of `infer`.

            entropy H(E_s p_s),  expected entropy E_s H(p_s),  mutual information: their difference

        with p_s the class probabilities under draw s of the weights.
        """
        return self.assess(x, task).uncertainty

    def log_prob(self, x: Any, y: Any, task: int | str | None = None) -> Tensor:
        """Return log p(y | x) of classes y `[N]`, numbers of the head's outputs; `[N]` in nats.

        Raises:
            DataError: y has another shape or holds no numbers of outputs.
        """
        probs = self.predict(x, task)
        outputs = probs.shape[1]
        labels = real_numbers(y, "y").to(self.method.device)
        if labels.shape != probs.shape[:1] or labels.is_floating_point():
            raise DataError(f"must be {len(probs)} whole numbers, one for each input", at="y")
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < outputs:
            raise DataError(f"must be numbers of outputs from 0 to {outputs - 1}", at="y")
        return probs.gather(1, labels.long()[:, None])[:, 0].log()

    def number(self, task: int | str) -> int:
        """The number of a task (from 0) by its number or name.

        Raises:
            UserError: there is no such task.
        """
        names = self.tasks
        if isinstance(task, str) and task in names:
            return names.index(task)
        if isinstance(task, Integral) and not isinstance(task, bool) and 0 <= task < len(names):
            return int(task)
        known = ", ".join(map(repr, names))
        raise bad_value("task", task, f"is none of 0 to {len(names) - 1}, or {known}")

    def head(self, task: int | None) -> int:
        """The head of a task by its number; the first one for None."""
        return 0 if task is None else self.card["tasks"][task]["head"]

    def read(self, data: str, data_dir: Path | None = None) -> Iterator[Batch]:
        """Read inputs from files or a data set; see `vcl_radial.models.inputs.read_inputs`."""
        from vcl_radial.models.inputs import Form, read_inputs

        about, size = self.card["input"], self.image_size
        shape: tuple[int, ...] = tuple(about["shape"])
        if size is not None and self.backbone is not None:
            shape = 3, size, size
        form = Form(shape, size, about.get("permuted", False))
        return read_inputs(data, form, data_dir)

    @property
    def image_size(self) -> int | None:
        """Pixels along the edges to which image files are stretched; None: their own size."""
        stream = self._stream
        size: int | None = stream.get("image_size") or stream.get("feature_size")
        return size

    @cached_property
    def backbone(self) -> Callable[[Tensor], Tensor] | None:
        """The network that makes the inputs `[N, D]` of images; None if it learned from images.

        Raises:
            UserError: the package with its weights is not installed.
        """
        if self._stream.get("features") not in PRETRAINING:
            return None
        from vcl_radial.data.streams.build import backbone_of

        return backbone_of(self._stream).load()

    @property
    def _stream(self) -> Mapping[str, Any]:
        stream: Mapping[str, Any] = self.card.get("spec", {}).get("stream", {})
        return stream

    def _assess(self, x: Tensor, number: int | None) -> tuple[Tensor, ...]:
        """Probabilities of prepared inputs, and the parts of their uncertainty."""
        log_p = self._log_draws(x, number)
        mean = log_p.logsumexp(0) - math.log(len(log_p))
        total, expected = entropy(mean).to(mean), entropy(log_p).mean(0).to(mean)
        return mean.exp(), total, (total - expected).clamp_min(0), expected

    @torch.no_grad()
    def _log_draws(self, x: Tensor, number: int | None) -> Tensor:
        """Log-probabilities of prepared inputs under the draws of `Method.predict`, `[S, N, C]`."""
        method = self.method
        with method.using(method.predictor(number)), shared_inputs(method.network, x):
            outputs = method.draws(x, self.head(number))
        return self.log_probabilities(outputs)

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """Log-probabilities of classes `[S, N, C]` from the network's outputs under draws."""
        return self.method.likelihood.log_probabilities(outputs)

    def inputs(self, x: Any) -> Tensor:
        """The raw inputs `[N, ...]` as the network takes them.

        Raises:
            DataError: the inputs have another shape, or are not finite.
        """
        return torch.cat([*self._batches(x)])

    def _batches(self, x: Any) -> Iterator[Tensor]:
        """The inputs as the network takes them, in batches."""
        shape = tuple(self.card["input"]["shape"])
        if self.card["input"]["scaling"] is None:
            raise UserError(
                "this model does not know how its stream made inputs of raw data: predict with "
                "model.method"
            )
        raw = real_numbers(x, "x")
        if raw.ndim in (3, 4) and self.backbone is not None:
            from vcl_radial.data.feature_rows import in_batches

            raw = in_batches(self.backbone, raw).float()
        each = tuple(raw.shape[1:])
        fits = len(shape) == 1 and raw.ndim > 1 and math.prod(each) == shape[0]
        if not len(raw.shape) or not (fits or shape in (each, (1, *each))):
            raise DataError(f"has shape {list(raw.shape)}, not [N, {str([*shape])[1:]}", at="x")
        lowest = self.card["input"].get("lowest")
        if lowest is not None and lowest >= 0 and len(raw) and raw.min() < 0:
            warnings.warn(
                "x has negative numbers and the inputs in training had none: give raw inputs, as "
                "they were before standardising",
                stacklevel=4,
            )

        def prepared(part: Tensor) -> Tensor:
            check_inputs(part, "x")
            part = part.to(self.method.device, torch.float32)
            scaled = self.scaled(part.reshape(len(part), *shape))
            check_scale(scaled, "x")
            return scaled

        return map(prepared, torch.split(raw, self.batch_size))

    @property
    def batch_size(self) -> int:
        """Largest number of inputs that are predicted together."""
        return BATCH

    def scaled(self, x: Tensor) -> Tensor:
        """Scale inputs `[N, *shape]` as in training."""
        m, s = self.card["input"]["scaling"]
        return x.sub(m).div(s)
