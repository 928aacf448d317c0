"""Call only the plugins that handle an event.

Avalanche calls its plugins ten times per step, and each call goes through every metric and logger.
With small networks this takes several per cent of a step, nearly all of it for methods that do
nothing.
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
"""Events of Avalanche's plugins in every training step."""


def handles(plugin: Any, event: str) -> bool:
    """Whether a plugin, or one of an evaluator's metrics or loggers, handles an event."""
    if isinstance(plugin, EvaluationPlugin) and not hasattr(type(plugin), event):
        return any(handles(inner, event) for inner in (*plugin.metrics, *plugin.loggers))
    method = getattr(plugin, event, None)
    idle = (getattr(base, event, None) for base in (BaseSGDPlugin, PluginMetric))
    return method is not None and getattr(method, "__func__", method) not in idle


def reads_gradients(plugins: Iterable[Any]) -> bool:
    """Whether a plugin may add to the loss, or read `.grad` of means and rhos."""
    harmless = (Clock, EvaluationPlugin, LRSchedulerPlugin, PeriodicEval)
    return any(
        handles(plugin, event)
        for plugin in plugins
        if not isinstance(plugin, harmless)
        for event in STEP_EVENTS
    )


class StepCallbacks:
    """Mixin for an Avalanche template that skips events of a step that no plugin handles.

    The handled events are determined at the start of every epoch.
    """

    plugins: Iterable[Any]
    _handled: frozenset[str] = frozenset(STEP_EVENTS)

    def _before_training_epoch(self, **kwargs: Any) -> None:
        super()._before_training_epoch(**kwargs)  # type: ignore[misc]
        self._handled = frozenset(
            event for event in STEP_EVENTS if any(handles(p, event) for p in self.plugins)
        )


def _hook(event: str) -> Callable[..., None]:
    def call_back(self: StepCallbacks, **kwargs: Any) -> None:
        if event in self._handled:
            trigger_plugins(self, event, **kwargs)

    return call_back


for _event in STEP_EVENTS:
    setattr(StepCallbacks, f"_{_event}", _hook(_event))
