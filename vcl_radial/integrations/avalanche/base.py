"""Methods as Avalanche strategies: they train on any Avalanche classification benchmark.

`Strategy(method, ...)` trains a method of `vcl_radial.methods`; a subclass of `ContinualStrategy`
defines `penalty` and `consolidate` itself. Both work with Avalanche's plugins, metrics and loggers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from avalanche.models import DynamicModule, MultiTaskModule
from avalanche.training.templates import SupervisedTemplate
from avalanche.training.templates.base import BaseTemplate
from avalanche.training.utils import _at_task_boundary
from torch import Tensor, nn
from torch.nn.functional import nll_loss
from torch.optim import Optimizer

from vcl_radial.data.streams import TensorLoading, TensorStream
from vcl_radial.errors import Diverged
from vcl_radial.integrations.avalanche.callbacks import STEP_EVENTS, StepCallbacks, reads_gradients
from vcl_radial.integrations.avalanche.checks import refuse_other_loss, require_known_heads
from vcl_radial.integrations.avalanche.optimizers import (
    optimizer_over,
    refuse_stale_schedulers,
    reset_optimizer,
)
from vcl_radial.integrations.avalanche.task_model import TaskModel
from vcl_radial.integrations.avalanche.whole_stream import WholeStream
from vcl_radial.likelihoods import Categorical
from vcl_radial.likelihoods.predict import in_mode
from vcl_radial.methods.base import Method
from vcl_radial.methods.labels import check_labels
from vcl_radial.methods.naive import Naive
from vcl_radial.methods.options import method_keywords
from vcl_radial.methods.tasks import Batch, Task, check_inputs, columns
from vcl_radial.methods.traits import MethodTraits
from vcl_radial.optimizers.schedules import Schedule, constant, set_rates
from vcl_radial.training.loop import warm_up

TRAITS = (
    *("needs_whole_stream", "memoryless", "trains_old_heads", "penalty_off_minimum"),
    *("penalty_grows_with_points", "memory_is_mean", "closed_form", "recipe_keys"),
    *("likelihoods", "posteriors"),
)
"""Attributes of a method's class that its strategy takes over."""

_STEP = ("criterion", "backward", "optimizer_step")
"""Methods of a step that a subclass may override, beside `penalty`."""


class ContinualStrategy(
    MethodTraits, StepCallbacks, TensorLoading, WholeStream, SupervisedTemplate
):
    """Learn one experience after another; past experiences enter the loss as a penalty in nats.

        loss = mean NLL + kl_weight * penalty / N

    with N the number of training points of the experience.

    Args:
        model: a network, called as `network(x, task)` when it holds a
            `vcl_radial.nn.MultiHead` and as `network(x)` when not, or an Avalanche
            `MultiTaskModule`; or the method itself, a `vcl_radial.methods.base.Method`.
        optimizer: an optimiser over the model's parameters, or a function that makes one for a
            module; its state is reset at every experience.
        tensor_stream: the tensors of the benchmark, on the strategy's device, from which batches
            are cut; without it Avalanche's loaders are used.
        schedule: factor of the learning rates in an epoch, as a function of the fraction of
            finished epochs of the task.
        drop_last: whether to leave out the last, incomplete batch of each training epoch.
        settings: settings of Avalanche's `SupervisedTemplate`: `train_mb_size`, `train_epochs`,
            `eval_mb_size`, `device`, `plugins`, `evaluator`, `eval_every`; and settings and options
            of the method (`kl_weight`, `train_samples`, `eval_samples`, `eval_seed`, `loss_value`).

    Raises:
        UserError: the criterion is another one, or the optimiser cannot be used for every
            experience.
        DataError: labels do not fit the head, or inputs are not finite numbers.
        Diverged: the loss is not a finite number at the end of an epoch.
    """

    method_class: ClassVar[type[Method]] = Naive
    """The class of the method that a strategy makes; a user's class defines the hooks itself."""

    optimizer: Optimizer

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take over the traits of the class's `method_class`."""
        # Avalanche's hook rejects keywords that no strategy names, such as the settings of a
        # method.
        super(BaseTemplate, cls).__init_subclass__(**kwargs)
        if "method_class" in vars(cls):
            for trait in TRAITS:
                if trait not in vars(cls):
                    setattr(cls, trait, getattr(cls.method_class, trait))

    def __init__(
        self,
        *,
        model: nn.Module | Method,
        optimizer: Optimizer | Callable[[nn.Module], Optimizer],
        schedule: Schedule = constant,
        drop_last: bool = False,
        tensor_stream: TensorStream | None = None,
        **settings: Any,
    ) -> None:
        keywords = method_keywords(self.method_class) & settings.keys()
        method_settings = {key: settings.pop(key) for key in keywords}
        if isinstance(model, Method):
            if method_settings:
                names = ", ".join(sorted(method_settings))
                raise TypeError(f"{names}: set them where the method is made")
            self.__dict__.update({trait: getattr(model, trait) for trait in TRAITS})
        method = model if isinstance(model, Method) else self.method_class(model, **method_settings)
        self.method: Method = method
        foreign = require_known_heads(method)
        self._make_optimizer = None if isinstance(optimizer, Optimizer) else optimizer
        refuse_other_loss(settings.setdefault("criterion", nn.CrossEntropyLoss()))
        task_model = method.network if foreign else TaskModel(method)
        super().__init__(
            model=task_model,
            optimizer=optimizer if isinstance(optimizer, Optimizer) else optimizer(task_model),
            **settings,
        )
        method.check_optimizer(self.optimizer)
        # Avalanche adapts these modules to an experience; a network of the suite has none.
        dynamic = (isinstance(module, DynamicModule) for module in method.network.modules())
        self._has_dynamic_modules = foreign or any(dynamic)
        self._plain_optimizer = self.optimizer
        self._method_optimizer: Optimizer | None = None
        cls = type(self)
        own_penalty = cls.penalty is not ContinualStrategy.penalty
        if own_penalty:
            method.penalty = self.penalty  # type: ignore[method-assign]
        self._has_own_step = own_penalty or _defines(cls, _STEP)
        self.gradient_elsewhere = _defines(cls, (*_STEP, *(f"_{event}" for event in STEP_EVENTS)))
        self.schedule = schedule
        self.drop_last = drop_last
        self.tensor_stream = tensor_stream
        self.mb_logits: Tensor | None = None

    # A subclass may override these.

    def penalty(self) -> Tensor | float:
        """The penalty of past tasks on the weights, a scalar in nats; 0 without memory."""
        return type(self.method).penalty(self.method)

    def consolidate(self, experience: Any) -> None:
        """Carry a finished experience forward; a method without memory does nothing."""
        type(self.method).end_task(self.method, self.method.task)

    def state_dict(self) -> dict[str, Any]:
        """The state that is carried from task to task, as plain tensors; subclasses extend it."""
        memory = type(self.method).state_dict(self.method)
        del memory["network"]  # the model holds it
        return {"model": self.model.state_dict()} | memory

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load what `state_dict` returned."""
        self.method.check_state(state)
        self.model.load_state_dict(state["model"])
        memory = {**state, "network": self.network.state_dict()}
        type(self.method).load_state_dict(self.method, memory)

    @property
    def network(self) -> nn.Module:
        """The network inside Avalanche's model."""
        return self.method.network

    def __getattr__(self, name: str) -> Any:
        """An attribute of the method, such as `past` or `posterior`."""
        method = self.__dict__.get("method")
        if name.startswith("_") or not hasattr(method, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(method, name)

    @property
    def kl_weight(self) -> float:
        """Factor of the penalty."""
        return self.method.kl_weight

    @kl_weight.setter
    def kl_weight(self, weight: float) -> None:
        self.method.kl_weight = weight

    @property
    def loss_value(self) -> bool:
        """Whether the loss includes the penalty's value."""
        return self.method.loss_value

    @loss_value.setter
    def loss_value(self, value: bool) -> None:
        self.method.loss_value = value

    @property
    def tasks(self) -> list[int]:
        """The task labels of the current experience."""
        return sorted(self.experience.task_labels)

    # A step.

    def _unpack_minibatch(self) -> None:
        super()._unpack_minibatch()
        if self.is_training:
            batch = self.method.extend(self._minibatch())
            self._task_of_step = batch.task
            if batch.x is not self.mb_x:
                self.mbatch = [*batch]

    @property
    def _batch(self) -> Batch:
        """The batch of the step; a plugin may have changed it."""
        return Batch(self.mb_x, self.mb_y, self._task_of_step)

    def _minibatch(self) -> Batch:
        """The mini-batch, with one number as its task if all rows have the same."""
        task, row_labels = self.sole_task, self.mb_task_id
        # Reading a label per row would wait for the device.
        foreign = isinstance(self.network, MultiTaskModule)
        return Batch(self.mb_x, self.mb_y, row_labels if foreign or task is None else task)

    def forward(self) -> Tensor:
        """The current mini-batch's output `[B, C]`: logits in training, else the log-predictive.

        With several training samples the output is the log of their mean probability; the loss
        uses each of them.
        """
        if not self.is_training:
            batch, number = self._minibatch(), self.experience.current_experience
            output: Tensor = self.method.predict(batch.x, batch.task, number=number)
            return output
        self.mb_logits = logits = self.method.outputs(self._batch)
        check_labels(self.method, self._batch, logits.shape[-1])
        likelihood = self.method.likelihood
        return likelihood.logits(logits) if logits.dim() == 2 else likelihood.mean_output(logits)

    def criterion(self) -> Tensor:
        """Mean NLL, in training plus kl_weight * penalty / N; nats per point."""
        if not self.is_training:
            if self.mb_y.is_cpu:
                Categorical().check(self.mb_y, self.mb_output.shape[-1])
            return nll_loss(self.mb_output, self.mb_y)
        assert self.mb_logits is not None
        return self.method.loss(self._batch, self.mb_logits)

    def backward(self) -> None:
        """Compute the gradients."""
        self.loss: Tensor = self.method.backward(self.loss)

    def optimizer_step(self) -> None:
        """Update the weights."""
        self.method.step(self.optimizer)

    # A task.

    def train_dataset_adaptation(self, **kwargs: Any) -> None:
        """Select the points of the experience that the method trains on."""
        super().train_dataset_adaptation(**kwargs)
        rows = self.method.select(self._all_points)
        if rows is not None:
            self.adapted_dataset = self.adapted_dataset.subset(rows.tolist())

    def check_model_and_optimizer(self, **kwargs: Any) -> None:
        """Make the heads of a task, begin it, and reset the optimiser."""
        boundary = _at_task_boundary(self.experience, before=True)
        if self.optimized_param_id is None and self._make_optimizer is None:
            # Avalanche must know the parameters before new heads are made.
            reset_optimizer(super().make_optimizer, **kwargs)
        if boundary:
            self.model = self.model_adaptation()
        self.method.gradients_are_read = self._has_own_step or reads_gradients(self.plugins)
        self.method.begin_task(self._task())
        if boundary:
            self.make_optimizer(**kwargs)

    def model_adaptation(self, model: nn.Module | None = None) -> nn.Module:
        """Make the heads of the experience; an evaluation skips Avalanche's slower adaptation."""
        model = self.model if model is None else model
        other_device = self.device != next(model.parameters()).device
        if self.is_training or self._has_dynamic_modules or other_device:
            adapted: nn.Module = super().model_adaptation(model)
            return adapted
        assert isinstance(model, TaskModel)
        model.adaptation(self.experience)
        return model

    def make_optimizer(self, **kwargs: Any) -> None:
        """Reset the optimiser: Adam's moments belong to the task that made them."""
        if self._make_optimizer is None:
            if self.optimizer is self._method_optimizer:  # made from the user's optimiser
                self.optimizer = self._plain_optimizer
            reset_optimizer(super().make_optimizer, **kwargs)
            self._plain_optimizer = self.optimizer
        self.optimizer = self._method_optimizer = self.method.make_optimizer(self._optimizer_over)
        if self._make_optimizer is not None:
            self.optimized_param_id: dict[str, Any] = {}
            refuse_stale_schedulers(self.plugins, self.optimizer)

    def _optimizer_over(self, network: nn.Module) -> Optimizer:
        """The optimiser of the settings, over the method's network or a copy of it."""
        if network is self.network:
            make = self._make_optimizer
            return self.optimizer if make is None else make(self.model)
        if self._make_optimizer is not None:
            return self._make_optimizer(network)
        return optimizer_over(network, self.network, self.optimizer)

    def _task(self) -> Task:
        """The experience as a method's task."""
        return Task(
            number=self.experience.current_experience,
            points=len(self.adapted_dataset),
            batches=self._points_in_order,
            heads=self.tasks,
            steps=self.train_epochs * len(self.dataloader),
            epochs=self.train_epochs,
            batch_size=self.train_mb_size,
            schedule=self.schedule,
        )

    def _points_in_order(self) -> Iterable[Batch]:
        training = self.dataloader
        self.make_train_dataloader(shuffle=False, drop_last=False)
        loader, self.dataloader = self.dataloader, training
        return (Batch(batch[0], batch[1], batch[-1]) for batch in loader)

    def _all_points(self) -> Batch:
        return Batch(*columns(self._points_in_order(), self.device))

    def make_train_dataloader(
        self, shuffle: bool = True, drop_last: bool | None = None, **kwargs: Any
    ) -> None:
        """Make the loader: batches cut from one tensor if possible, else Avalanche's loader."""
        drop_last = self.drop_last if drop_last is None else drop_last
        super().make_train_dataloader(shuffle=shuffle, drop_last=drop_last, **kwargs)

    def _train_exp(self, experience: Any, eval_streams: Any = None, **kwargs: Any) -> None:
        warm_up(self.method, self.make_optimizer, self._warm_up_epoch)
        super()._train_exp(experience, eval_streams, **kwargs)

    def _warm_up_epoch(self, number: int, count: int) -> None:
        self.set_rates(self.optimizer, number / count)
        self.training_epoch()

    def _before_training_epoch(self, **kwargs: Any) -> None:
        super()._before_training_epoch(**kwargs)
        self.set_rates(self.optimizer, self.clock.train_exp_epochs / self.train_epochs)

    def set_rates(self, optimizer: Optimizer, fraction: float) -> None:
        """Set the learning rates of the schedule after this fraction of the epochs."""
        set_rates(optimizer, self.schedule, fraction)

    def _after_training_epoch(self, **kwargs: Any) -> None:
        if not torch.isfinite(self.loss):
            for batch in self._points_in_order():
                check_inputs(batch.x, f"task {self.experience.current_experience + 1}")
            raise Diverged(
                f"the loss became {self.loss.item()} in epoch {self.clock.train_exp_epochs + 1} "
                f"of task {self.experience.current_experience + 1}; try a smaller learning_rate"
            )
        super()._after_training_epoch(**kwargs)

    def _after_training_exp(self, **kwargs: Any) -> None:
        # This comes before the plugins, so that their evaluations and checkpoints use the new
        # prior.
        with in_mode(self.network, training=False):
            self.consolidate(self.experience)
        super()._after_training_exp(**kwargs)


class Strategy(ContinualStrategy):
    """A method as an Avalanche strategy: `Strategy(VCL(network), optimizer=..., ...)`.

    Args:
        method: method that learns the experiences.
        settings: settings of `ContinualStrategy`, without those of the method.
    """

    def __init__(self, method: Method, **settings: Any) -> None:
        super().__init__(model=method, **settings)


# Remove Avalanche's wrapper of the constructor; see `__init_subclass__`.
ContinualStrategy.__init__ = ContinualStrategy.__init__.__wrapped__  # type: ignore[attr-defined, method-assign]


def _defines(cls: type[ContinualStrategy], names: Iterable[str]) -> bool:
    """Whether a class overrides one of these methods."""
    return any(getattr(cls, name) is not getattr(ContinualStrategy, name) for name in names)
