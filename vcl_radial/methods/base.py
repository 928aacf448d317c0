"""The base class of all methods: a network learns tasks one after another, in plain PyTorch.

A method knows a network, a likelihood and the size of a task; it knows no Avalanche, no track and
no file. A training loop such as `vcl_radial.training.loop` calls, for every task,

    method.begin_task(task)
    optimizer = method.make_optimizer(make)
    for batch in ...:
        method.learn(batch, optimizer)
    method.end_task(task)

and `predict` in between as often as it likes. A subclass usually overrides two or three of these.

A step runs with the network in training mode. Everything else runs in evaluation mode, including
the methods that a subclass overrides. Both restore the mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vcl_radial.config import ranges
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Categorical, Likelihood
from vcl_radial.likelihoods.objectives import per_point
from vcl_radial.likelihoods.predict import draws, in_mode
from vcl_radial.methods.labels import check_labels
from vcl_radial.methods.modes import evaluating
from vcl_radial.methods.serves import check_network
from vcl_radial.methods.tasks import NO_TASK, Batch, Task, WarmUp, calls, check_batch, check_inputs
from vcl_radial.methods.traits import MethodTraits
from vcl_radial.nn import MultiHead, parameters_in_use
from vcl_radial.nn.grouping import Layer
from vcl_radial.nn.heads import adapt_heads
from vcl_radial.nn.movement import LayerMovement
from vcl_radial.nn.shared_inputs import shared_inputs
from vcl_radial.nn.weights import VariationalWeights, drawn_by, held_scales

MakeOptimizer = Callable[[nn.Module], Optimizer]
"""Makes an optimiser over the parameters of a network."""


def _key_of(method: Method, argument: str) -> str:
    """The key in a recipe of an argument: its own, or one of `[options]`."""
    return argument if argument in method.recipe_keys else f"options.{argument}"


class Method(MethodTraits):
    """Learn one task after another; past tasks enter the loss as a penalty in nats.

        loss = mean NLL + kl_weight * penalty / N

    with N the number of training points of the task.

    Args:
        network: called as `network(x, task)` if it holds a `vcl_radial.nn.MultiHead`, and otherwise
            as `network(x)`.
        likelihood: likelihood of the outputs; by default they are logits of classes.
        kl_weight: factor of the penalty.
        train_samples: weight samples in the estimate of the NLL.
        eval_samples: weight samples in a prediction.
        eval_seed: seed of the weight samples in a prediction.
        loss_value: whether the loss includes the penalty's value. Without it a method may compute
            only the penalty's gradient, which can be cheaper.

    Raises:
        UserError: the method does not support the likelihood or the posterior, or a setting is
            outside the range in its constructor's annotation (`vcl_radial.config.ranges`).
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check the ranges of a subclass's constructor, and wrap its methods to set the mode."""
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            checked: Any = ranges.checked(cls.__init__, _key_of)
            cls.__init__ = checked  # type: ignore[method-assign]
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
        self.kl_weight, self.loss_value = kl_weight, loss_value
        self.train_samples, self.eval_samples = train_samples, eval_samples
        self.eval_seed = eval_seed
        self.with_task = any(isinstance(module, MultiHead) for module in network.modules())
        """Whether the network is called with a task."""
        self.gradients_are_read = False
        """Whether other code adds to the loss or reads `.grad`; set before a task begins."""
        self.sample_by_sample = False
        """Whether a step computes the gradient of one weight sample at a time, so that more samples
        cost time but no memory. A class that overrides `outputs` decides this itself."""
        self.on_outputs: Callable[[Tensor, Tensor], None] | None = None
        """Called after a step with outputs and targets of the task's points, as in `nll`."""
        self.task = NO_TASK
        """The current task, or the last one."""
        self.labels_seen = False
        """Whether the labels of the task have been checked; see `check_labels`."""
        self.movement: Sequence[LayerMovement] = ()
        """Distance of the last task's posterior from its prior, where the method has one."""
        self.sampling: Tensor | None = None
        """Spread of the last prediction over draws, `[B]` in per cent; see `predict.sampling`."""

    # Most methods override these.

    def begin_task(self, task: Task) -> None:
        """Prepare for a task.

        Raises:
            UserError: every parameter of the body and of the task's heads is frozen.
        """
        self.task, self.labels_seen = task, False
        self.likelihood.begin_task(task.points)
        adapt_heads(self.network, task.heads)
        if not self.parameters_in_use():
            raise UserError(
                "all weights of the network are frozen (requires_grad = False), so that nothing is "
                "left to train: leave its head trainable"
            )

    def penalty(self) -> Tensor | float:
        """The penalty of past tasks on the weights, a scalar in nats; 0 without memory."""
        return 0.0

    def end_task(self, task: Task) -> None:
        """Carry a finished task forward; a method without memory does nothing."""

    def fit_likelihood(self, **draw_options: Any) -> None:
        """Set the likelihood to its optimum for the trained weights, before `end_task`.

        Args:
            draw_options: the number of `samples`, and their `seed`.
        """
        self.likelihood.fit(
            (self.posterior_outputs(*call, **draw_options), y) for call, y in self.points()
        )

    def state_dict(self) -> dict[str, Any]:
        """The state that is carried from task to task, as plain tensors; subclasses extend it.

        In the middle of a task it also holds the sums that the steps have accumulated, but not the
        values that `begin_task` derives from the state before the task: to resume in a task, call
        `begin_task` first.
        """
        state = {"method": type(self).__name__, "network": self.network.state_dict()}
        if learned := self.likelihood.state_dict():
            state["likelihood"] = learned
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned.

        Raises:
            UserError: the state belongs to another method or to another posterior.
        """
        self.check_state(state)
        self.network.load_state_dict(state["network"])
        self.likelihood.load_state_dict(state.get("likelihood", {}))

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise `UserError` if a state belongs to another method."""
        cls = type(self).__name__
        if (name := state.get("method", cls)) != cls:
            raise UserError(f"the state is of {name}, and the method is {cls}: load it into {name}")

    def forget_caches(self) -> None:
        """Drop values that can be computed from the weights again, within a task.

        A loop that can resume in the middle of a task calls it whenever it stores its state, even
        if it does not stop then: recomputed values may differ by rounding.
        """

    # The parts of a training step.

    def learn(self, batch: Batch, optimizer: Optimizer) -> Tensor:
        """Take one step on a batch; returns the loss, detached."""
        if self.task is NO_TASK:
            raise UserError(
                f"{type(self).__name__} has no task to learn: call begin_task(task), and in a "
                "begin_task() of your own super().begin_task(task)"
            )
        check_batch(batch, self.heads if self.with_task else None)
        new, seen, losses = batch, [], []
        with in_mode(self.network, training=True):
            batch = self.extend(batch)
            optimizer.zero_grad()
            parts = self._parts_of_step()
            for _ in range(parts):
                outputs = self.outputs(batch)
                check_labels(self, new, outputs.shape[-1])
                loss = self.loss(batch, outputs)
                loss = loss if parts == 1 else loss / parts
                if loss.is_cpu and not math.isfinite(loss.item()):
                    check_inputs(new.x, f"task {self.task.number + 1}")
                losses.append(self.backward(loss))
                # Without replayed points, from which the likelihood has already learned.
                seen.append(outputs.detach()[..., : len(new.y), :])
            self.step(optimizer)
        learned = seen[0] if parts == 1 else torch.stack(seen)
        self.likelihood.observe(learned, new.y)
        if self.on_outputs is not None:
            self.on_outputs(learned, new.y)
        return losses[0] if parts == 1 else torch.stack(losses).sum()

    def _parts_of_step(self) -> int:
        """The number of gradients that a step sums: one per weight sample, or one in all."""
        one_by_one = self.sample_by_sample and type(self).outputs is Method.outputs
        return self.train_samples if one_by_one else 1

    def extend(self, batch: Batch) -> Batch:
        """The points of a step; a subclass may add points to the batch of the task."""
        return batch

    def output(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """The network's outputs `[B, C]` under one draw of the weights."""
        output: Tensor = self.network(x, task) if self.with_task else self.network(x)
        return output

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs of a step, `[B, C]`, or `[S, B, C]` under several samples of the weights."""
        if self.train_samples == 1 or self._parts_of_step() > 1:
            return self.output(batch.x, batch.task)
        return torch.stack([self.output(batch.x, batch.task) for _ in range(self.train_samples)])

    def nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean NLL of outputs, shapes as in `outputs`; nats per point."""
        return self.likelihood.nll(outputs, targets)

    def loss(self, batch: Batch, outputs: Tensor) -> Tensor:
        """Mean NLL plus kl_weight * penalty / N, in nats per point."""
        nll = self.nll(outputs, batch.y)
        penalty = self.penalty()
        if isinstance(penalty, Tensor):
            return nll + per_point(penalty, self.task.points, self.kl_weight)
        return nll

    def backward(self, loss: Tensor) -> Tensor:
        """Compute the gradients; returns the loss of the step, detached."""
        torch.autograd.backward(loss)
        return loss.detach()

    def step(self, optimizer: Optimizer) -> None:
        """Update the weights."""
        optimizer.step()

    # Some methods also need these.

    def select(self, points: Callable[[], Batch]) -> Tensor | None:
        """The indices of the points to train on, before a task begins; None for all of them.

        Args:
            points: returns all points of the task as one batch.
        """
        return None

    def make_optimizer(self, make: MakeOptimizer) -> Optimizer:
        """The optimiser of a task that has begun.

        Args:
            make: makes the optimiser that the settings name, over the parameters of a network.
        """
        optimizer = make(self.network)
        self.check_optimizer(optimizer)
        return optimizer

    def check_optimizer(self, optimizer: Optimizer) -> None:
        """Raise `UserError` if the method cannot use an optimiser."""

    def warm_up(self) -> WarmUp | None:
        """Epochs before the epochs of the task; after them the task starts with a new optimiser."""
        return None

    def predict(
        self,
        x: Tensor,
        task: int | Tensor = 0,
        *,
        number: int | None = None,
        differentiable: bool = False,
    ) -> Any:
        """p(y | x) in the likelihood's form; log-probabilities `[B, C]` of classes, in nats.

        Args:
            x: inputs `[B, ...]`.
            task: label of the head, one for all rows or one per row `[B]`.
            number: number of the task that the inputs belong to, if it is known.
            differentiable: whether to keep the graph for gradients.
        """
        with self.using(self.predictor(number)), shared_inputs(self.network, x):
            outputs = self.draws(x, task, differentiable=differentiable)
            predicted, self.sampling = self.likelihood.prediction(outputs)
            return predicted

    def predictor(self, number: int | None) -> nn.Module:
        """The network that predicts the points of a task; its number is None if it is unknown."""
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
            task: label of the head, one for all rows or one per row `[B]`.
            samples: S, instead of `eval_samples`.
            seed: seed of the draws, instead of `eval_seed`.
            differentiable: whether to keep the graph for gradients.
        """
        with held_scales(self.network):
            return draws(
                lambda inputs: self.output(inputs, task),
                x,
                self.eval_samples if samples is None else samples,
                self.eval_seed if seed is None else seed,
                differentiable=differentiable,
            )

    def posterior_outputs(self, x: Tensor, task: int | Tensor = 0, **draw_options: Any) -> Tensor:
        """Outputs `[S, B, C]` under the weights at the end of training, as in `draws`."""
        return self.draws(x, task, **draw_options)

    def outputs_at_means(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """Outputs at the means of the weights, `[1, B, C]`, or one for each network `[M, B, C]`."""
        layers = [m for m in self.network.modules() if isinstance(m, VariationalWeights)]

        def mean_of(layer: VariationalWeights) -> Callable[[], Layer]:
            mean = layer.mean()
            return lambda: mean

        # Layers take other weights than draws only where gradients are enabled.
        with torch.no_grad(), drawn_by(layers, mean_of), torch.enable_grad():
            return Method.output(self, x, task).detach().unsqueeze(0)

    @contextmanager
    def using(self, network: nn.Module) -> Iterator[None]:
        """Replace the method's network by another one of the same form, inside the context."""
        original, self.network = self.network, network
        try:
            yield
        finally:
            self.network = original

    def __getstate__(self) -> dict[str, Any]:
        """The state for a copy, without the task's data and the callbacks of other code."""
        state = {k: v for k, v in vars(self).items() if isinstance(v, nn.Module) or not callable(v)}
        return state | {"task": replace(self.task, batches=NO_TASK.batches), "sampling": None}

    # Properties and helpers.

    @property
    def gradient_elsewhere(self) -> bool:
        """Whether the class's step or optimiser may add the penalty's gradient."""
        return any(getattr(type(self), part) is not getattr(Method, part) for part in STEP)

    @property
    def device(self) -> torch.device:
        """The network's device."""
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
        # A multi-head model of a user leaves no gradient at the other heads.
        in_use = self.parameters_in_use()
        return {name: weight for name, weight in in_use.items() if weight.grad is not None}

    def points(self) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
        """Yield each training point of the task once, in batches of one head.

        Yields the arguments of the network's call, inputs `[B, ...]` first, and the targets `[B]`.
        """
        heads = self.heads if self.with_task else None
        for batch in self.task.batches():
            check_batch(batch, heads)
            with in_mode(self.network, training=False):
                yield from calls(batch, self.device, by_head=self.with_task)


evaluating(Method)

STEP = ("learn", "loss", "backward", "step", "make_optimizer")
"""Methods of a step that may add the gradient of a penalty whose value has no gradient."""
