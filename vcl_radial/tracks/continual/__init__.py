"""The continual track: a method on a task sequence, trained task by task."""

WORKER_MODULES = (
    "vcl_radial.runs.attempt",
    "vcl_radial.tracks.continual.track",
    "vcl_radial.tracks.continual.training",
    "sklearn.datasets",
)
"""Modules that a worker of `vcl-radial run` imports before its first step."""
