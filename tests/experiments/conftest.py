from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def _own_threads():
    """Runs set the number of threads of the process; other tests keep theirs."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a module of a user's own on the import path."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def write(name: str, code: str) -> None:
        (folder / f"{name}.py").write_text(code)

    return write
