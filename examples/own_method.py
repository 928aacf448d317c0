"""Write a method as one class, and run it on images, on tables and on photographs.

python examples/own_method.py

The command line does the same: vcl-radial run diabetes-sequence --method examples/own-method.toml
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from vcl_radial.cli import main
from vcl_radial.methods.base import Method


class PullToOld(Method):
    """loss = mean NLL + strength / 2 ||w - w_old||^2 / N, with N the points of the task."""

    def __init__(self, network, *, strength=300.0, **settings):
        super().__init__(network, **settings)
        self.strength, self.old = strength, {}

    def penalty(self):
        """How far the weights in use are from those of the last task, in nats."""
        in_use = self.parameters_in_use().items()
        squares = [(w - self.old[name]).square().sum() for name, w in in_use if name in self.old]
        return self.strength / 2 * torch.stack(squares).sum() if squares else 0.0

    def end_task(self, task):
        """Remember the weights that the task has trained."""
        self.old |= {n: w.detach().clone() for n, w in self.trained_parameters().items()}

    def state_dict(self):
        """The network and the old weights."""
        return super().state_dict() | {"old": self.old}

    def load_state_dict(self, state):
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self.old = state["old"]


SETTINGS = {
    "split-digits-multi-head": ["epochs=5", "hidden=[100]", "batch_size=32"],
    "diabetes-sequence": ["steps=300"],
    "retinopathy-synthetic": ["epochs=2", "data.patients=150", "data.size=32"],
}
"""A benchmark of each track, and how to make it quick."""

if __name__ == "__main__":
    methods = [str(Path(__file__).parent / "own-method.toml"), "naive"]
    with TemporaryDirectory() as folder:
        for benchmark, settings in SETTINGS.items():
            command = ["run", benchmark, "--method", *methods, "--seeds", "1"]
            if status := main([*command, "--out", f"{folder}/{benchmark}", "--set", *settings]):
                sys.exit(status)
