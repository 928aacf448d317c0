import subprocess
from pathlib import Path

import pytest

from vcl_radial.runs import environment


def test_without_a_checkout_or_git_there_is_no_commit(tmp_path: Path, monkeypatch):
    def missing(*_args, **_kwargs):
        raise FileNotFoundError("git")

    monkeypatch.setattr(environment, "__file__", str(tmp_path / "a" / "b" / "environment.py"))
    assert environment.commit() is None
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(environment.subprocess, "run", missing)
    assert environment.commit() is None


def test_the_commit_is_that_of_the_checkout_and_says_when_it_was_changed(
    tmp_path: Path, monkeypatch
):
    file = tmp_path / "a" / "b" / "environment.py"
    file.parent.mkdir(parents=True)
    file.touch()
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    try:
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "--no-verify", "-m", "A"], check=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    monkeypatch.setattr(environment, "__file__", str(file))
    assert environment.commit() == head.stdout[:12]
    file.write_text("changed")
    assert environment.commit() == f"{head.stdout[:12]}-dirty"


def test_a_package_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(environment, "_PACKAGES", ("torch", "no-such-package-anywhere"))
    packages = environment.describe("cpu", 1)["packages"]
    assert packages["torch"]
    assert packages["no-such-package-anywhere"] is None


def test_the_processor_has_a_name_even_where_the_system_does_not_tell(monkeypatch):
    def unreadable(*_args, **_kwargs):
        raise OSError

    assert environment.processor()
    monkeypatch.setattr(Path, "read_text", unreadable)
    assert environment.processor()
