"""The base class of methods that learn in closed form, in `end_task`, on fixed features."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config.ranges import Count
from vcl_radial.errors import UserError
from vcl_radial.features import (
    Body,
    BodyWithHead,
    Features,
    FirstTaskBody,
    Inputs,
    Patches,
    RandomReLU,
    Tangent,
)
from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.calibration import POINTS
from vcl_radial.methods.base import MakeOptimizer, Method
from vcl_radial.methods.exact_head import ExactHead
from vcl_radial.methods.labels import check_labels
from vcl_radial.methods.tasks import Batch, Task, WarmUp, check_batch, check_inputs
from vcl_radial.nn import MultiHead, SingleHead, WithHeads
from vcl_radial.nn.heads import first_head

ROWS = 2_048
"""Number of points whose features are concatenated at a time; at least one batch."""

HELD = 2**30
"""Largest size of a task's features that are stored, in bytes; larger ones are recomputed."""


_BOUNDS = -12.0, 16.0

PointsOf = Callable[[], Iterator[tuple[Tensor, Tensor]]]
"""Returns all features `[n, D]` and targets `[n]`, in batches, at every call."""


class FeatureModel(nn.Module):
    """One head, or one per task, on features of the inputs and a 1.

    Args:
        features: features of the inputs; they are fixed at the end of the first task or before.
        make_head: makes one head.
        multi_head: whether every task has its own head.
    """

    fitted: Tensor

    def __init__(
        self, features: Features, make_head: Callable[[], nn.Module], *, multi_head: bool
    ) -> None:
        super().__init__()
        self.features = features
        if self.trained is None:
            features.requires_grad_(False)
        self.head = (MultiHead if multi_head else SingleHead)(make_head)
        self.register_buffer("fitted", torch.tensor(False))
        # Heads are made when their tasks begin, but an optimiser needs a parameter earlier.
        self.nothing = nn.Parameter(torch.zeros(0))

    @property
    def trained(self) -> FirstTaskBody | None:
        """The features, with a training head, while a task trains them; None if they are fixed."""
        features = self.features
        if not isinstance(features, FirstTaskBody) or features.held:
            return None
        return features if any(p.requires_grad for p in features.parameters()) else None

    def phi(self, x: Tensor) -> Tensor:
        """The features and a 1, `[B, D]`.

        Raises:
            UserError: the number of features does not match the weights of the head.
        """
        features = self.features(x)
        if features.shape[1:] != (self.features.size,):
            raise UserError(
                f"a linear model of {self.features.size} features, as many as the network's first "
                f"linear layer has inputs, was given {list(features.shape[1:])}: take a network "
                "of linear layers, or other options.features"
            )
        return torch.cat([features, torch.ones_like(features[:, :1])], dim=1)

    def forward(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """The outputs of the head, or of the training head while the features are trained."""
        if self.trained is not None:
            return self.trained.outputs(x)
        outputs: Tensor = self.head(self.phi(x), task)
        return outputs


class FixedFeatureMethod(Method):
    """Learn heads in closed form, on features of the inputs that no task changes.

    Subclasses define `make_head` and `learn_head`.

    Args:
        network: network of point estimates; a linear model with the same outputs replaces it.
        features: "inputs" for the network's inputs, flattened; "body" for the inputs of its heads
            under its initial weights; "first-task-body" for the inputs of its heads after gradient
            training on the first task, with the likelihood alone;
            "random-relu", "patches" and "tangent" as in `vcl_radial.features`.
        units: number of units of "random-relu".
        of: inputs of those units: "inputs", "body" or "patches".
        filters: number of filters of "patches".
        patch: side of the patches of "patches", in pixels.
        pool: number of cells of "patches" along a side.
        mirror: whether "patches" treats an image and its mirror image as the same.
        directions: number of directions of "tangent" in every layer.
        settings: settings of `Method`.

    Raises:
        UserError: the network's weights have a posterior, the network does not have these features,
            or an option is out of its range.
    """

    closed_form = True
    posteriors = frozenset({"none"})
    network: FeatureModel

    def __init__(
        self,
        network: nn.Module,
        *,
        features: Literal[
            "inputs", "body", "first-task-body", "random-relu", "patches", "tangent"
        ] = "inputs",
        units: Count = 2000,
        of: Literal["inputs", "body", "patches"] = "inputs",
        filters: Count = 400,
        patch: Count = 6,
        pool: Count = 4,
        mirror: bool = False,
        directions: Count = 1500,
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.closed_form = features != "first-task-body"  # type: ignore[misc]
        self._width = outputs = _outputs(network)
        multi_head = self.with_task
        fixed: dict[str, Callable[[], Features]] = {
            "inputs": lambda: Inputs(math.prod(_shape(network))),
            "body": lambda: Body(network),
            "patches": lambda: Patches(_shape(network), filters, patch, pool, mirror),
        }
        kinds = fixed | {
            "random-relu": lambda: RandomReLU(fixed[of](), units),
            "tangent": lambda: Tangent(network, directions),
            "first-task-body": lambda: FirstTaskBody(network),
        }
        phi = kinds[features]()
        self.network = FeatureModel(
            phi, lambda: self.make_head(phi.size + 1, outputs), multi_head=multi_head
        )
        self._trainer: Method | None = None
        if isinstance(phi, FirstTaskBody):
            self._trainer = self.make_trainer(BodyWithHead(phi))

    def make_trainer(self, network: nn.Module) -> Method:
        """The method that trains a body with a training head; by default without a penalty."""
        return Method(network, likelihood=self.likelihood)

    @property
    def trainer(self) -> Method | None:
        """The method that trains the features in the current task; None if they are fixed."""
        if self.network.trained is None or self._trainer is None:
            return None
        for setting in ("kl_weight", "train_samples", "loss_value"):
            setattr(self._trainer, setting, getattr(self, setting))
        return self._trainer

    @abstractmethod
    def make_head(self, size: int, outputs: int) -> ExactHead[Any]:
        """A head of D = `size` features, including the 1."""

    @abstractmethod
    def learn_head(self, head: ExactHead[Any], points: PointsOf) -> None:
        """Add a task's points to a head."""

    def begin_task(self, task: Task) -> None:
        """Fit the features to the first task's inputs, unless they are trained on it."""
        super().begin_task(task)
        model = self.network
        if not model.fitted:
            model.features.fit(lambda: (call[0] for call, _ in self.points()))
            model.fitted.fill_(True)
        if (trainer := self.trainer) is not None:
            trainer.gradients_are_read = self.gradients_are_read
            # The trainer shares the likelihood, which has begun the task already.
            begun = self.likelihood.state_dict()
            trainer.begin_task(replace(task, heads=(0,)))
            self.likelihood.load_state_dict(begun)

    # The trainer takes the steps if features are trained; otherwise only `end_task` learns.

    def penalty(self) -> Tensor | float:
        """The trainer's penalty, in nats."""
        return 0.0 if (trainer := self.trainer) is None else trainer.penalty()

    def extend(self, batch: Batch) -> Batch:
        """The points of a step."""
        return batch if (trainer := self.trainer) is None else trainer.extend(batch)

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs of a step: of the training head while features are trained, otherwise 0."""
        if (trainer := self.trainer) is None:
            return torch.zeros(len(batch.y), self._width, device=self.device)
        return trainer.outputs(batch)

    def loss(self, batch: Batch, outputs: Tensor) -> Tensor:
        """The trainer's loss, or 0."""
        if (trainer := self.trainer) is None:
            return torch.zeros((), device=self.device)
        return trainer.loss(batch, outputs)

    def backward(self, loss: Tensor) -> Tensor:
        """Compute the gradients of features that are trained."""
        return loss if (trainer := self.trainer) is None else trainer.backward(loss)

    def step(self, optimizer: Optimizer) -> None:
        """Update the weights of features that are trained."""
        if (trainer := self.trainer) is not None:
            trainer.step(optimizer)

    def learn(self, batch: Batch, optimizer: Optimizer) -> Tensor:
        """Take a step if features are trained."""
        if self.trainer is not None:
            return super().learn(batch, optimizer)
        check_batch(batch, self.heads if self.with_task else None)
        check_labels(self, batch, self._width)
        if self.on_outputs is not None:
            self.on_outputs(self.outputs(batch), batch.y)
        return torch.zeros(())

    def make_optimizer(self, make: MakeOptimizer) -> Optimizer:
        """The optimiser of the features that are trained, with their head."""
        # Equal for all tasks, because a state that is loaded later decides whether the body is
        # fixed.
        if self._trainer is None or type(self._trainer) is Method:
            return super().make_optimizer(make)
        return self._trainer.make_optimizer(make)

    def warm_up(self) -> WarmUp | None:
        """The trainer's warm-up."""
        return None if (trainer := self.trainer) is None else trainer.warm_up()

    def forget_caches(self) -> None:
        """Drop the trainer's caches."""
        if self._trainer is not None:
            self._trainer.forget_caches()

    def fit_likelihood(self, **draw_options: Any) -> None:
        """Do nothing: the noise is part of the posterior."""

    def end_task(self, task: Task) -> None:
        """Add the task's points to the posteriors of its heads, and calibrate their sharpness."""
        if (trainer := self.trainer) is not None and (body := self.network.trained) is not None:
            trainer.end_task(trainer.task)
            body.hold()
        with torch.no_grad():
            self.learn_heads(task)

    def learn_heads(self, task: Task) -> None:
        """Learn the heads of a task with fixed features."""
        for label in self.heads:
            head, points = self.head(label), partial(self._points_of_head, label)
            if head.frozen:
                continue
            if 4 * task.points * self.network.features.size <= HELD:
                points = partial(iter, list(points()))
            self.learn_head(head, points)
            if head.sharpness is not None:
                step = max(1, task.points // POINTS)
                for phi, y in points():
                    thinned = phi[::step], y[::step]
                    head.sharpness.observe(head.without_itself(*thinned), thinned[1])

    def state_dict(self) -> dict[str, Any]:
        """The state of every method, and the state that the trainer adds."""
        state = super().state_dict()
        if self._trainer is not None:
            carried = self._trainer.state_dict()
            if extra := {key: carried[key] for key in carried.keys() - state.keys()}:
                state["trainer"] = extra
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        if self._trainer is not None and "trainer" in state:
            current = self._trainer.state_dict()
            unchanged = {"method": current["method"], "network": current["network"]}
            self._trainer.load_state_dict(state | unchanged | state["trainer"])

    def draws(self, x: Tensor, task: int | Tensor = 0, **draw_options: Any) -> Tensor:
        """Outputs `[S, B, C]`; S = 1 for classes (closed form) and while features are trained."""
        if self.network.trained is not None or not isinstance(self.likelihood, Gaussian):
            draw_options["samples"] = 1
        return super().draws(x, task, **draw_options)

    def head(self, label: int) -> ExactHead[Any]:
        """The head of tasks with this label."""
        heads = self.network.head
        head = heads.head(label) if isinstance(heads, MultiHead) else heads.output
        assert isinstance(head, ExactHead)
        return head

    def _points_of_head(self, label: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Features and targets of the points of a head, about `ROWS` at a time."""
        parts: list[tuple[Tensor, Tensor]] = []
        count = 0
        for (x, *head), y in self.points():
            if head and head[0] != label:
                continue
            check_inputs(x, f"task {self.task.number + 1}")
            parts.append((self.network.phi(x), y))
            count += len(y)
            if count >= ROWS:
                yield _joined(parts)
                parts, count = [], 0
        if parts:
            yield _joined(parts)


def gram(phi: Tensor) -> Tensor:
    """Sum phi phi' over points `[n, D]`, `[D, D]` float64."""
    phi = phi.double()
    if phi.device.type != "cpu":
        return phi.T @ phi
    # NumPy detects that the product is symmetric, and computes half of it.
    return torch.from_numpy(np.dot(phi.numpy().T, phi.numpy()))


def most_likely(evidence: Callable[[float], float]) -> float:
    """The logarithm of the hyperparameter that maximises the evidence, to within 0.1."""
    best = minimize_scalar(
        lambda at: -evidence(at), bounds=_BOUNDS, method="bounded", options={"xatol": 0.1}
    )
    return float(best.x)


def _joined(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    phi, y = zip(*parts, strict=True)
    return torch.cat(phi), torch.cat(y)


def _outputs(network: nn.Module) -> int:
    """The number of outputs of a network."""
    layer = first_head(network)
    if layer is None:
        layer = next((m for m in reversed([*network.modules()]) if isinstance(m, nn.Linear)), None)
    return int(getattr(layer, "out_features", 1))


def _shape(network: nn.Module) -> tuple[int, ...]:
    """The shape of an input of the network.

    Raises:
        UserError: the shape is not known.
    """
    if isinstance(network, WithHeads):
        return network.shape
    layer = next((m for m in network.modules() if getattr(m, "weight", None) is not None), None)
    if isinstance(layer, nn.Linear):
        return (layer.in_features,)
    raise UserError(
        "options.features: the network has an unknown number of inputs: take a network of linear "
        "layers, or vcl_radial.nn.WithHeads"
    )
