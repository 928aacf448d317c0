"""What is run, how it is carried out, and where its results lie."""

WORKER_MODULES = (
    "vcl_radial.runs.attempt",
    "vcl_radial.tracks.continual.track",
    "vcl_radial.tracks.continual.training",
    "sklearn.datasets",
)
"""What a worker of `vcl-radial run` imports before its first step."""
