"""Calling back only those who listen.

Avalanche calls its plugins back ten times a step, and each call goes through every metric and
logger as well; with small networks that is several per cent of a step, nearly all of it for
methods that do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from avalanche.core import BaseSGDPlugin
from avalanche.evaluation import PluginMetric
from avalanche.training.plugins import EvaluationPlugin, LRSchedulerPlugin
from avalanche.training.plugins.clock import Clock
from avalanche.training.templates.base_sgd import PeriodicEval
from avalanche.training.utils import trigger_plugins

STEP_EVENTS = (
    "before_training_iteration",
    "before_forward",
    "after_forward",
    "before_backward",
    "after_backward",
    "before_update",
    "after_update",
    "after_training_iteration",
)
"""What Avalanche's plugins are told of in every training step."""


def listens(plugin: Any, event: str) -> bool:
    """Whether a plugin, or for an evaluator one of its metrics or loggers, does something then."""
    if isinstance(plugin, EvaluationPlugin) and not hasattr(type(plugin), event):
        return any(listens(inner, event) for inner in (*plugin.metrics, *plugin.loggers))
    method = getattr(plugin, event, None)
    idle = (getattr(base, event, None) for base in (BaseSGDPlugin, PluginMetric))
    return method is not None and getattr(method, "__func__", method) not in idle


def reads_gradients(plugins: Iterable[Any]) -> bool:
    """Whether a plugin may add to the loss, or want `.grad` of means and rhos."""
    known = (Clock, EvaluationPlugin, LRSchedulerPlugin, PeriodicEval)
    return any(
        listens(plugin, event)
        for plugin in plugins
        if not isinstance(plugin, known)
        for event in STEP_EVENTS
    )


class StepCallbacks:
    """Mixin for an Avalanche template: events of a step that nobody listens to are left out.

    Who listens is found out at the start of every epoch.
    """

    plugins: Iterable[Any]
    _heard: frozenset[str] = frozenset(STEP_EVENTS)

    def _before_training_epoch(self, **kwargs: Any) -> None:
        super()._before_training_epoch(**kwargs)  # type: ignore[misc]
        self._heard = frozenset(
            event for event in STEP_EVENTS if any(listens(p, event) for p in self.plugins)
        )


def _hook(event: str) -> Callable[..., None]:
    def call_back(self: StepCallbacks, **kwargs: Any) -> None:
        if event in self._heard:
            trigger_plugins(self, event, **kwargs)

    return call_back


for _event in STEP_EVENTS:
    setattr(StepCallbacks, f"_{_event}", _hook(_event))
