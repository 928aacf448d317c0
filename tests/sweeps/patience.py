"""A method that waits within a run, so that its process can be killed there."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENT = """
import os, time
from pathlib import Path
from vcl_radial.integrations.avalanche.methods import Naive

class Patient(Naive):
    "At the end of a task it says that it is there, and waits for the gate to open."

    def __init__(self, *, gate, patient=True, **settings):
        super().__init__(**settings)
        self.gate, self.patient = Path(gate), patient

    def consolidate(self, experience):
        super().consolidate(experience)
        if self.patient:
            (self.gate / str(os.getpid())).touch()
            while not (self.gate / "open").exists():
                time.sleep(0.05)
"""


def until(what: Callable[[], bool]) -> None:
    """Wait for something, however long it takes on a busy machine."""
    while not what():
        time.sleep(0.05)


def alive(process: str) -> bool:
    """Whether there is a process of this number that has not ended."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False
