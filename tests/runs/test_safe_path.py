"""Nothing in the current folder is imported but what settings name, whichever process imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DECOYS = ("socket", "random", "json", "torch", "numpy", "pandas", "avalanche", "sitecustomize")
TINY = ["--set", "epochs=1", "hidden=[8]", "stream.tasks=2", "--device", "cpu"]
RUN = ["run", "split-digits-multi-head", "--method", "naive", "--seeds", "2", "--jobs", "2", *TINY]


@pytest.fixture
def command(tmp_path: Path, monkeypatch):
    """A command in a folder whose files have the names of modules, and leave a trace."""
    monkeypatch.chdir(tmp_path)
    for name in DECOYS:
        Path(f"{name}.py").write_text(f"open('RAN-{name}', 'w').close()\nraise SystemExit\n")
    # An empty entry would be the current folder.
    folders = filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    return lambda *words, options=(): subprocess.run(
        [sys.executable, *options, "-m", "vcl_radial", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_itself_imports_none(command):
    answer = command("list")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert list(Path().glob("RAN-*")) == []


@pytest.mark.processes
def test_workers_import_none_and_find_what_a_recipe_names(command):
    folder = Path("recipes")
    folder.mkdir()
    (folder / "own.py").write_text("from beside import Own\n")
    (folder / "beside.py").write_text(
        "from vcl_radial.methods.registry import built_in_class\n"
        "class Own(built_in_class('naive')): ...\n"
    )
    for name, target in (("a", "own:Own"), ("b", "own.py:Own")):
        (folder / f"{name}.toml").write_text(f'strategy = "{target}"\nposterior = "none"\n')
    methods = ["recipes/a.toml", "recipes/b.toml"]
    answer = command(*RUN[:4], *methods, *RUN[4:])
    assert (answer.returncode, answer.stderr) == (0, "")
    assert len(list(Path("runs").rglob("done"))) == 6
    assert list(Path().glob("RAN-*")) == []
    assert command("report", "runs").returncode == 0
    assert list(Path().glob("RAN-*")) == []


@pytest.mark.processes
@pytest.mark.parametrize("how", ["option", "variable"])
def test_warnings_that_are_errors_end_no_worker(command, how, monkeypatch):
    if how == "variable":
        monkeypatch.setenv("PYTHONWARNINGS", "error")
    answer = command(*RUN, options=["-W", "error"] if how == "option" else [])
    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_file_that_hides_behind_another_of_its_name_is_named(tmp_path, monkeypatch):
    from vcl_radial.config import outside
    from vcl_radial.errors import UserError

    monkeypatch.chdir(tmp_path)
    Path("colorsys.py").write_text("class Own: ...\n")
    with pytest.raises(UserError, match=r"colorsys\.py is in .*: rename one"):
        outside.find("strategy", "colorsys:Own")
    assert str(tmp_path) not in sys.path[:-1]
