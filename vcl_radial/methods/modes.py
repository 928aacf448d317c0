"""Evaluation mode of a method's network outside training steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from vcl_radial.likelihoods.predict import in_mode

EVALUATES = (
    "begin_task",
    "end_task",
    "select",
    "fit_likelihood",
    "predict",
    "draws",
    "posterior_outputs",
    "outputs_at_means",
)
"""Methods that run with the network in evaluation mode."""

C = TypeVar("C", bound=type)


def evaluating(kind: C) -> C:
    """Make the `EVALUATES` of a class of methods run in evaluation mode.

    A user's loop calls the methods of a subclass directly, so that no caller of ours can set the
    mode.
    """
    for name in EVALUATES:
        if not hasattr(function := getattr(kind, name), "in_evaluation"):
            setattr(kind, name, _in_evaluation(function))
    return kind


def _in_evaluation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of a method so that the method's network is in evaluation mode inside."""

    @wraps(function)
    def evaluated(self: Any, *args: Any, **kwargs: Any) -> Any:
        with in_mode(self.network, training=False):
            return function(self, *args, **kwargs)

    vars(evaluated)["in_evaluation"] = True
    return evaluated
