"""What every test leaves as it found it, and the published data, for tests that ask for them."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from vcl_radial.config import outside
from vcl_radial.data.data_files import DATA_VARIABLE

# Examples are the same in every run, and a slow machine is no fault of theirs.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# Tensors here are so small that a second thread only costs.
torch.set_num_threads(1)

DATA = os.environ.get(DATA_VARIABLE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests that ask for the published data are marked, so that they can be left out."""
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker("data")


def pytest_collection_finish():
    """What was imported stays: looking through it for garbage after every run takes most of one."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _without_waiting_for_the_disk():
    """No test cuts the power, so that nothing need be on the disk before it goes on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _on_one_core():
    """A run's threads, where tests share the cores, burn a hundred times its work in waiting."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _without_data():
    """No other test meets the data of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(DATA_VARIABLE, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _compiled_library():
    """It is loaded before a test names an empty cache folder, in which it would be compiled."""
    from vcl_radial import native

    native.library()


@pytest.fixture(scope="session", autouse=True)
def _few_resamples():
    """The bootstrap over patients takes longer than a tiny training."""
    from vcl_radial.tracks.retinopathy.scoring import score_table

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(score_table.__kwdefaults__, "resamples", 2)
        yield


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the published files."""
    if not DATA:
        pytest.skip(f"{DATA_VARIABLE} does not name a folder with the published files")
    monkeypatch.setenv(DATA_VARIABLE, DATA)
    return Path(DATA)


@pytest.fixture(autouse=True)
def _own_process():
    """Runs and commands take over threads, denormals, SIGTERM and where modules are sought."""
    threads, handler = torch.get_num_threads(), signal.getsignal(signal.SIGTERM)
    path = list(sys.path)
    yield
    sys.path[:] = path
    outside._settings_folders.clear()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(autouse=True)
def _ivon_package(request):
    """Its package is optional."""
    if "ivon" in request.node.name.lower():
        pytest.importorskip("ivon")


@pytest.fixture(params=[True, False], ids=["multi-head", "single-head"])
def multi_head(request):
    """Whether each task has a head, or one head serves all."""
    return request.param


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a module of a user's own on the import path, for worker processes too."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def write(name: str, code: str) -> None:
        (folder / f"{name}.py").write_text(code)

    return write


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Call the command line in an empty folder; give exit code, output and error lines."""
    from vcl_radial.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, list[str]]:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as end:  # argparse
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return code, out, err.splitlines()

    return call


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pictures, which take longer than the runs."""
    from vcl_radial.reporting import write

    monkeypatch.setattr(write, "write_report", lambda *_args, **_settings: set())


@pytest.fixture(autouse=True)
def _blank_pictures(request):
    """Drawing takes most of a report's time: pictures are blank, but in tests marked `drawn`."""
    if request.node.get_closest_marker("drawn"):
        yield
        return
    from vcl_radial.reporting.figures import style

    class Blank:
        def __init__(self, figure):
            pass

        def print_figure(self, file, **settings):
            file.write(b" ")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "FigureCanvasAgg", Blank)
        patch.setattr(style, "with_few_colours", lambda data: data)
        yield
