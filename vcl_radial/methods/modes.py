"""The mode of a method's network: training mode within a step, evaluation mode in all else."""

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
)
"""What of a method runs with its network in evaluation mode."""

C = TypeVar("C", bound=type)


def evaluating(kind: C) -> C:
    """Let `EVALUATES` of a class of methods run in evaluation mode, whoever calls them.

    A user's own loop calls what a subclass defines, so callers cannot set the mode for it.
    """
    for name in EVALUATES:
        if not hasattr(function := getattr(kind, name), "in_evaluation"):
            setattr(kind, name, _in_evaluation(function))
    return kind


def _in_evaluation(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a method, with the method's network in evaluation mode inside."""

    @wraps(function)
    def evaluated(self: Any, *args: Any, **kwargs: Any) -> Any:
        with in_mode(self.network, training=False):
            return function(self, *args, **kwargs)

    vars(evaluated)["in_evaluation"] = True
    return evaluated
