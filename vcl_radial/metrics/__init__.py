"""Scores of a run: pure functions of predictions and of tidy accuracy tables."""

from typing import TYPE_CHECKING

from vcl_radial.metrics.seeds import holm, mean_and_standard_error, sign_flip_test, sign_test
from vcl_radial.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from vcl_radial.metrics.continual import (
        accuracy_matrix,
        average_accuracy,
        average_ece,
        average_nll,
        average_sampling,
        backward_transfer,
        forgetting,
        forward_transfer,
        learning_accuracy,
        minimum_accuracy,
        recency_bias,
        summary,
    )
    from vcl_radial.metrics.prediction import accuracy, expected_calibration_error, nll

__all__ = [
    "accuracy",
    "accuracy_matrix",
    "average_accuracy",
    "average_ece",
    "average_nll",
    "average_sampling",
    "backward_transfer",
    "expected_calibration_error",
    "forgetting",
    "forward_transfer",
    "holm",
    "learning_accuracy",
    "mean_and_standard_error",
    "minimum_accuracy",
    "nll",
    "recency_bias",
    "sign_flip_test",
    "sign_test",
    "summary",
]
# Reports read tables alone: without PyTorch, which scores of predictions need.

# Imported when first used: reports read tables without PyTorch, and find faults without pandas.
_MODULES = {
    "accuracy_matrix": "continual",
    "average_accuracy": "continual",
    "average_ece": "continual",
    "average_nll": "continual",
    "average_sampling": "continual",
    "backward_transfer": "continual",
    "forgetting": "continual",
    "forward_transfer": "continual",
    "learning_accuracy": "continual",
    "minimum_accuracy": "continual",
    "recency_bias": "continual",
    "summary": "continual",
    "accuracy": "prediction",
    "expected_calibration_error": "prediction",
    "nll": "prediction",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
