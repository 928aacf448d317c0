"""What a run is judged by: pure functions of predictions and of tidy accuracy tables."""

from typing import TYPE_CHECKING

from vcl_radial.lazy import attributes
from vcl_radial.metrics.seeds import holm, mean_and_standard_error, sign_flip_test, sign_test

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
__getattr__ = attributes(__name__)
