"""What is run, how it is carried out, and where its results lie."""

WORKER_MODULES = (
    "vcl_radial.runs.attempt",
    "vcl_radial.experiments.track",
    "vcl_radial.tracks.continual",
    "sklearn.datasets",
)
"""What a worker of `vcl-radial run` imports before its first step."""
