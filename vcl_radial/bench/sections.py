"""What `vcl-radial bench` can measure; known without importing anything heavy."""

SECTIONS = {
    "step": "a training epoch against the floor, the same network without any of this suite",
    "peers": "a training epoch of other Bayesian layers and loaders against ours",
    "methods": "a task with every method, against fine-tuning",
    "run": "a whole `vcl-radial run` in its parts",
    "command": "what a command costs beside training, against the import of PyTorch and Avalanche",
    "growth": "time and memory over width, depth, channels, weight samples, batch, tasks",
    "kl": "the corrected radial KL against forward passes, linear and convolution",
    "regression": "a step of the regression track: compiled, in PyTorch, a network by itself",
    "lanes": "many runs as lanes of one program, and in two worker processes",
}
"""The sections by name, each with what it measures."""
