"""What `vcl-radial bench` can measure; known without importing anything heavy."""

SECTIONS = {
    "step": "a training epoch against the floor, the same network without any of this suite",
    "peers": "a training epoch of other Bayesian layers and loaders against ours",
    "run": "a whole `vcl-radial run` in its parts",
    "growth": "time and memory over width, depth, weight samples, batch and tasks",
    "kl": "the corrected radial KL against the forward pass, over the number of weights",
}
"""The sections by name, each with what it measures."""
