"""Scores of a run: pure functions of predictions and of tidy accuracy tables."""

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
from vcl_radial.metrics.seeds import holm, mean_and_standard_error, sign_flip_test, sign_test

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
