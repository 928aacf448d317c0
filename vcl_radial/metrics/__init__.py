"""Scores of a run: pure functions of predictions and of tidy accuracy tables."""

from vcl_radial.metrics.continual import (
    accuracy_matrix,
    average_accuracy,
    backward_transfer,
    final_average,
    forgetting,
    forward_transfer,
    learning_accuracy,
    minimum_accuracy,
    recency_bias,
    run_metrics,
    summary,
)
from vcl_radial.metrics.declared import METRICS, Metric, metric
from vcl_radial.metrics.game import regret, relative_reward
from vcl_radial.metrics.prediction import accuracy, expected_calibration_error, nll
from vcl_radial.metrics.retention import retention_areas
from vcl_radial.metrics.rows import log_likelihood, rmse
from vcl_radial.metrics.seeds import holm, mean_and_standard_error, sign_flip_test, sign_test

__all__ = [
    "METRICS",
    "Metric",
    "accuracy",
    "accuracy_matrix",
    "average_accuracy",
    "backward_transfer",
    "expected_calibration_error",
    "final_average",
    "forgetting",
    "forward_transfer",
    "holm",
    "learning_accuracy",
    "log_likelihood",
    "mean_and_standard_error",
    "metric",
    "minimum_accuracy",
    "nll",
    "recency_bias",
    "regret",
    "relative_reward",
    "retention_areas",
    "rmse",
    "run_metrics",
    "sign_flip_test",
    "sign_test",
    "summary",
]
