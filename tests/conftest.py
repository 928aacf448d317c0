"""What every test leaves as it found it."""

import signal
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# Examples are the same in every run, and a slow machine is no fault of theirs.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _own_process():
    """Runs and commands take over threads, denormals, SIGTERM and where modules are sought."""
    threads, handler = torch.get_num_threads(), signal.getsignal(signal.SIGTERM)
    path = list(sys.path)
    yield
    sys.path[:] = path
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a module of a user's own on the import path, for worker processes too."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def write(name: str, code: str) -> None:
        (folder / f"{name}.py").write_text(code)

    return write
