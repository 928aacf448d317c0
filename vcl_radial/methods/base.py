"""What every method is: how a network learns tasks one after another, in plain PyTorch.

A method knows a network, a likelihood and the size of a task; it knows no Avalanche, no track and
no file. Whoever trains it calls, for every task, as `vcl_radial.methods.loop` does,

    method.begin_task(task)
    optimizer = method.make_optimizer(make)
    for batch in ...:
        method.learn(batch, optimizer)
    method.end_task(task)

and `predict` in between as often as wanted. A method that fits overrides two or three of these.

A step trains in training mode. All else, what a subclass overrides included, runs with the network
in evaluation mode. Both leave the mode as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config import ranges
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Categorical, Likelihood
from vcl_radial.likelihoods.objectives import per_point
from vcl_radial.likelihoods.predict import draws, in_mode
from vcl_radial.methods.modes import evaluating
from vcl_radial.methods.serves import check_network
from vcl_radial.methods.tasks import Batch, Task, check_batch, check_inputs
from vcl_radial.nn import MultiHead, parameters_in_use
from vcl_radial.nn.movement import LayerMovement
from vcl_radial.nn.shared_inputs import shared_inputs
from vcl_radial.nn.weights import held_scales

if TYPE_CHECKING:
    from vcl_radial.nn.lane_step import LaneStep

MakeOptimizer = Callable[[nn.Module], Optimizer]
"""Makes an optimiser over the parameters of a network."""


class WarmUp(NamedTuple):
    """Epochs before those of a task.

    Attributes:
        epochs: how many.
        inside: what holds while they last.
    """

    epochs: int
    inside: AbstractContextManager[None]


class Method:
    """Learn one task after another; the past enters the loss as a term in nats.

        loss = mean NLL + kl_weight * penalty / N

    with N the number of training points of the task.

    Args:
        network: called as `network(x, task)` when it holds a `vcl_radial.nn.MultiHead`, and as
            `network(x)` when not.
        likelihood: of its outputs; by default they are logits of classes.
        kl_weight: factor of the penalty.
        train_samples: weight samples in the estimate of the NLL.
        eval_samples: weight samples in a prediction.
        eval_seed: of the weight samples in a prediction.
        loss_value: whether the loss holds the penalty's value, for whoever reads it. Without it a
            method may give only the penalty's gradient, which can be cheaper.

    Raises:
        UserError: the method does not serve the likelihood or the posterior, or a setting is out of
            the range that its constructor is annotated with (`vcl_radial.config.ranges`).
    """

    likelihoods: ClassVar[frozenset[str]] = frozenset(
        {"categorical", "one-hot", "bernoulli", "gaussian"}
    )
    """The names of the likelihoods that it serves."""
    posteriors: ClassVar[frozenset[str]] = frozenset()
    """Those that its network may have: names of families, "any" for every family, "none" for point
    estimates; empty for all of these. A family of the user's own counts as any of them but
    "none"."""
    needs_whole_stream: ClassVar[bool] = False
    """Whether the method trains once on all tasks together."""
    memoryless: ClassVar[bool] = False
    """Whether the method carries nothing from task to task, by design."""
    trains_old_heads: ClassVar[bool] = False
    """Whether the heads of earlier tasks go on changing, by design."""
    penalty_off_minimum: ClassVar[bool] = False
    """Whether the penalty of the next task is not minimal where the last one ended, by design: a
    prior that is broadened, say, or a term beside the distance from the past."""
    penalty_grows_with_points: ClassVar[bool] = False
    """Whether the penalty grows with the task's number of training points, by design: the loss
    divides by it, and so holds a mean over the points."""
    memory_is_mean: ClassVar[bool] = False
    """Whether what a task leaves is a mean over its points, by design, as in MAS as published: a
    task then counts the same in the past however many points it had."""
    closed_form: ClassVar[bool] = False
    """Whether a task is learned where it ends, with neither steps nor random numbers, by design."""
    asks_heads: ClassVar[bool] = False
    """Whether the method asks each head of its network by itself."""
    lane_step: ClassVar[type[LaneStep] | None] = None
    """A training step of many of its runs at once, with Adam. It has to be in the class itself: a
    subclass may train otherwise, and a method without one trains its runs one by one."""
    lane_options: ClassVar[frozenset[str]] = frozenset()
    """The options that such runs may have, which `begin_lane` takes."""
    recipe_keys: ClassVar[frozenset[str]] = frozenset()
    """What the method takes of a recipe beside the settings above, where it keeps a posterior of
    its own over a network of point estimates: of "prior_scale" and "initial_noise" those that its
    constructor has, and "eval_samples" where its predictions draw."""
    fixed_options: ClassVar[frozenset[str]] = frozenset()
    """Options of the class that it is derived from which its constructor sets itself."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check the ranges of a subclass's constructor, and run what it overrides in its mode."""
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = ranges.checked(cls.__init__)  # type: ignore[method-assign]
        evaluating(cls)

    def __init__(
        self,
        network: nn.Module,
        *,
        likelihood: Likelihood | None = None,
        kl_weight: float = 1.0,
        train_samples: int = 1,
        eval_samples: int = 100,
        eval_seed: int = 0,
        loss_value: bool = True,
    ) -> None:
        self.network = network
        self.likelihood = Categorical() if likelihood is None else likelihood
        check_network(self, network, self.likelihood)
        self.kl_weight = kl_weight
        self.train_samples = train_samples
        self.eval_samples, self.eval_seed = eval_samples, eval_seed
        self.loss_value = loss_value
        self.with_task = any(isinstance(module, MultiHead) for module in network.modules())
        """Whether the network is called with a task."""
        self.gradients_are_read = False
        """Whether somebody else adds to the loss or reads `.grad`; said before a task begins."""
        self.task = _NO_TASK
        """The task that is learned, or was learned last."""
        self._labels_seen = False
        self.movement: Sequence[LayerMovement] = ()
        """Of the last task's posterior against its prior, where the method has one."""
        self.sampling: Tensor | None = None
        """How far draws moved the last prediction, `[B]` in per cent; see `predict.sampling`."""

    # What most methods override.

    def begin_task(self, task: Task) -> None:
        """Get ready for a task.

        Raises:
            UserError: every parameter of the body and of the task's heads is frozen.
        """
        self.task, self._labels_seen = task, False
        self.likelihood.begin_task(task.points)
        for module in self.network.modules():
            if isinstance(module, MultiHead):
                module.adapt(task.heads)
        if not self.parameters_in_use():
            raise UserError(
                "all weights of the network are frozen (requires_grad = False), and nothing is "
                "left to train: leave its head trainable"
            )

    @staticmethod
    def begin_lane(network: nn.Module, heads: Collection[int], **options: Any) -> None:
        """Get the network of a lane ready for a task, as `begin_task` does for a run by itself."""

    def penalty(self) -> Tensor | float:
        """What the past asks of the weights, a scalar in nats; 0 for a method without memory."""
        return 0.0

    def end_task(self, task: Task) -> None:
        """Carry a finished task forward; nothing for a method without memory."""

    def fit_likelihood(self, **of_draws: Any) -> None:
        """Let the likelihood take its optimum for what training has ended with, before the end.

        Args:
            of_draws: the number of `samples`, and their `seed`.
        """
        self.likelihood.fit(
            (self.posterior_outputs(*call, **of_draws), y) for call, y in self.points()
        )

    def state_dict(self) -> dict[str, Any]:
        """All that is carried from task to task, as plain tensors; extend it for more than that.

        In the middle of a task it holds too what the steps have added up, but not what `begin_task`
        derives from the state before the task: whoever goes on there begins the task first.
        """
        state = {"method": type(self).__name__, "network": self.network.state_dict()}
        if learned := self.likelihood.state_dict():
            state["likelihood"] = learned
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave.

        Raises:
            UserError: the state is of another method, or of another posterior.
        """
        self.check_state(state)
        self.network.load_state_dict(state["network"])
        self.likelihood.load_state_dict(state.get("likelihood", {}))

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise `UserError` where a state is of another method."""
        own = type(self).__name__
        if (name := state.get("method", own)) != own:
            raise UserError(f"the state is of {name}, and the method is {own}: load it into {name}")

    def forget_caches(self) -> None:
        """Drop what was computed from the weights and could be again, within a task.

        Whoever stops and goes on in the middle of a task calls it at the same steps of both ways:
        what is computed anew may differ by rounding.
        """

    # A step, in its parts.

    def learn(self, batch: Batch, optimizer: Optimizer) -> Tensor:
        """Make a step on a batch; the loss, detached."""
        if self.task is _NO_TASK:
            raise UserError(
                f"{type(self).__name__} has no task to learn: call begin_task(task), and in a "
                "begin_task() of your own super().begin_task(task)"
            )
        check_batch(batch, self.heads if self.with_task else None)
        new, points = batch, len(batch.y)
        with in_mode(self.network, training=True):
            batch = self.extend(batch)
            optimizer.zero_grad()
            outputs = self.outputs(batch)
            self.check_labels(new, outputs.shape[-1])
            loss = self.loss(batch, outputs)
            if loss.is_cpu and not math.isfinite(loss.item()):
                check_inputs(new.x, f"task {self.task.number + 1}")
            loss = self.backward(loss)
            self.step(optimizer)
        # Of points of the past the likelihood has learned already.
        self.likelihood.observe(outputs.detach()[..., :points, :], new.y)
        return loss

    def check_labels(self, batch: Batch, outputs: int) -> None:
        """See that the targets of a batch fit a head of so many outputs.

        Where the labels lie on a GPU, which a look at them waits for, all of a task are looked at
        once, in its first step.

        Raises:
            DataError: as `Likelihood.check`.
            UserError: as `check_batch`.
        """
        if batch.y.is_cpu:
            self.likelihood.check(batch.y, outputs)
        elif not self._labels_seen:
            self._labels_seen = True
            for part in chain([batch], self.task.batches()):
                on_cpu = Batch(part.x, part.y.cpu(), part.labels.cpu())
                check_batch(on_cpu, self.heads if self.with_task else None)
                self.likelihood.check(on_cpu.y, outputs)

    def extend(self, batch: Batch) -> Batch:
        """The points of a step, where it sees more than those of the task."""
        return batch

    def output(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """The network's outputs `[B, C]` under one draw of the weights."""
        output: Tensor = self.network(x, task) if self.with_task else self.network(x)
        return output

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs of a step, `[B, C]`, or `[S, B, C]` under several samples of the weights."""
        if self.train_samples == 1:
            return self.output(batch.x, batch.task)
        return torch.stack([self.output(batch.x, batch.task) for _ in range(self.train_samples)])

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean NLL of outputs, shapes as in `outputs`; nats per point."""
        return self.likelihood.nll(outputs, targets)

    def loss(self, batch: Batch, outputs: Tensor) -> Tensor:
        """Mean NLL, and the penalty over N; nats per point."""
        nll = self.nll(outputs, batch.y)
        penalty = self.penalty()
        if isinstance(penalty, Tensor):
            return nll + per_point(penalty, self.task.points, self.kl_weight)
        return nll

    def backward(self, loss: Tensor) -> Tensor:
        """Fill in the gradients; the loss of the step, detached."""
        torch.autograd.backward(loss)
        return loss.detach()

    def step(self, optimizer: Optimizer) -> None:
        """Move the weights."""
        optimizer.step()

    # What some methods need beside a step.

    def select(self, points: Callable[[], Batch]) -> Tensor | None:
        """The numbers of the points to train on, where a task begins; None for all of them.

        Args:
            points: gives all points of the task as one batch.
        """
        return None

    def make_optimizer(self, make: MakeOptimizer) -> Optimizer:
        """The optimiser of a task that has begun.

        Args:
            make: makes the one that was asked for, over the parameters of a network.
        """
        optimizer = make(self.network)
        self.check_optimizer(optimizer)
        return optimizer

    def check_optimizer(self, optimizer: Optimizer) -> None:
        """See that an optimiser serves the method; any does.

        Raises:
            UserError: it does not.
        """

    def warm_up(self) -> WarmUp | None:
        """Epochs before the task's own; the optimiser starts afresh after them."""
        return None

    def predict(
        self,
        x: Tensor,
        task: int | Tensor = 0,
        *,
        number: int | None = None,
        differentiable: bool = False,
    ) -> Any:
        """p(y | x) as the likelihood has it; log-probabilities `[B, C]` of classes, in nats.

        Args:
            x: inputs `[B, ...]`.
            task: whose head answers.
            number: of the task that the inputs are from, where that is known.
            differentiable: keep the graph, where gradients are wanted.
        """
        with self.using(self.predictor(number)), shared_inputs(self.network, x):
            outputs = self.draws(x, task, differentiable=differentiable)
            predicted, self.sampling = self.likelihood.prediction(outputs)
            return predicted

    def predictor(self, number: int | None) -> nn.Module:
        """The network that predicts the points of a task of this number, where it is known."""
        return self.network

    def draws(
        self,
        x: Tensor,
        task: int | Tensor = 0,
        *,
        samples: int | None = None,
        seed: int | None = None,
        differentiable: bool = False,
    ) -> Tensor:
        """Outputs `[S, B, C]` under draws of the weights that depend on a seed alone.

        Args:
            x: inputs `[B, ...]`.
            task: whose head answers.
            samples: S, in place of `eval_samples`.
            seed: in place of `eval_seed`.
            differentiable: keep the graph, where gradients are wanted.
        """
        with held_scales(self.network):
            return draws(
                lambda inputs: self.output(inputs, task),
                x,
                self.eval_samples if samples is None else samples,
                self.eval_seed if seed is None else seed,
                differentiable=differentiable,
            )

    def posterior_outputs(self, x: Tensor, task: int | Tensor = 0, **of_draws: Any) -> Tensor:
        """Outputs `[S, B, C]` under the weights that training has ended with, as in `draws`."""
        return self.draws(x, task, **of_draws)

    @contextmanager
    def using(self, network: nn.Module) -> Iterator[None]:
        """Inside, another network of the same form is in the place of the method's own."""
        own, self.network = self.network, network
        try:
            yield
        finally:
            self.network = own

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: not the data of the task at hand, nor what others have put in here."""
        state = {k: v for k, v in vars(self).items() if isinstance(v, nn.Module) or not callable(v)}
        return state | {"task": replace(self.task, batches=_no_batches), "sampling": None}

    # What is read of methods.

    @property
    def gradient_elsewhere(self) -> bool:
        """Whether the penalty's gradient may be in a step or an optimiser of the class's own."""
        return any(getattr(type(self), part) is not getattr(Method, part) for part in STEP)

    @property
    def device(self) -> torch.device:
        """Of the network."""
        return next(self.network.parameters()).device

    @property
    def heads(self) -> Sequence[int]:
        """The labels of the heads that the task trains."""
        return self.task.heads

    def parameters_in_use(self) -> dict[str, nn.Parameter]:
        """The trainable parameters of the body and of the task's heads, by name."""
        return parameters_in_use(self.network, self.heads)

    def trained_parameters(self) -> dict[str, nn.Parameter]:
        """The parameters that the task has trained, by name."""
        # A multi-head model that is not the suite's own leaves no gradient at the other heads.
        in_use = self.parameters_in_use()
        return {name: weight for name, weight in in_use.items() if weight.grad is not None}

    def points(self) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
        """Each training point of the task once, in batches of one head each.

        Yields the arguments with which the network is to be called, inputs `[B, ...]` first, and
        the targets `[B]`.
        """
        device = self.device
        for batch in self.task.batches():
            check_batch(batch, self.heads if self.with_task else None)
            x, y, labels = batch.x.to(device), batch.y.to(device), batch.labels.to(device)
            with in_mode(self.network, training=False):
                if not self.with_task:
                    yield (x,), y
                    continue
                for task in torch.unique(labels).tolist():
                    rows = labels == task
                    yield (x[rows], task), y[rows]


evaluating(Method)

STEP = ("learn", "loss", "backward", "step", "make_optimizer")
"""What of a step may hold the gradient of a penalty whose value has none."""


def _no_batches() -> Iterator[Batch]:
    return iter(())


_NO_TASK = Task(0, 1, _no_batches)
