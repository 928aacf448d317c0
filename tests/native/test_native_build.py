import multiprocessing
import os
import shutil
import stat
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from vcl_radial.native import build


@pytest.fixture(autouse=True)
def _afresh(monkeypatch, tmp_path):
    """Every test finds an empty cache folder, and leaves nothing behind for others."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    build._load.cache_clear()
    build.library.cache_clear()
    yield
    build._load.cache_clear()
    build.library.cache_clear()


def compiler(folder: Path, script: str) -> str:
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


needs_compiler = pytest.mark.skipif(
    build.unavailable() is not None, reason=str(build.unavailable())
)


def _finds_the_library(start) -> bool:
    start.wait()
    return build.library() is not None


@pytest.fixture
def quick_compiler(monkeypatch, tmp_path):
    """The compiler without its optimiser."""
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    monkeypatch.setenv("CC", compiler(tmp_path, f'exec "{found}" "$@" -O0'))


def in_processes(count: int) -> list[bool]:
    """Whether each of so many copies of this process, all at once, finds the library."""
    context = multiprocessing.get_context("fork")
    with multiprocessing.Manager() as manager, ProcessPoolExecutor(count, context) as pool:
        return list(pool.map(_finds_the_library, [manager.Barrier(count)] * count))


@needs_compiler
def test_a_second_process_finds_what_the_first_has_built(tmp_path, quick_compiler):
    files = set()
    for _ in range(2):
        assert in_processes(1) == [True]
        (built,) = (tmp_path / "cache" / "vcl_radial").glob("step-*.so")
        files.add((built.stat().st_ino, built.stat().st_mtime_ns))
    assert len(files) == 1


@needs_compiler
def test_processes_that_build_at_once_do_not_meet(tmp_path, quick_compiler):
    assert in_processes(3) == [True] * 3
    assert [p.suffix for p in (tmp_path / "cache" / "vcl_radial").iterdir()] == [".so"]


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv(build.SWITCH, "0")
    assert build.library() is None
    assert build.SWITCH in str(build.unavailable())


def test_without_a_compiler_the_reason_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert build.library() is None
    assert "no C compiler" in str(build.unavailable())


def test_a_compiler_that_refuses_is_quoted(monkeypatch, tmp_path):
    refusing = '[ "$1" = --version ] && exit 0; echo "no such flag" >&2; exit 1'
    monkeypatch.setenv("CC", compiler(tmp_path, refusing))
    assert build.library() is None
    assert "no such flag" in str(build.unavailable())


def test_what_cannot_be_loaded_is_no_library(monkeypatch, tmp_path):
    """A compiler that writes nonsense, as where the cache folder's disk is full."""
    writing = '[ "$1" = --version ] && exit 0; for a; do [ "$p" = -o ] && echo x > "$a"; p=$a; done'
    monkeypatch.setenv("CC", compiler(tmp_path, writing))
    assert build.library() is None
    assert "cannot be compiled or loaded" in str(build.unavailable())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache_folder_is_no_fault(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o500)
    assert build.library() is None
    assert build.unavailable() is not None


def _half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@needs_compiler
@pytest.mark.parametrize("damage", [_half, _one_bit, _fifo, _link, lambda p: os.truncate(p, 0)])
def test_a_damaged_library_is_built_anew_and_never_loaded(tmp_path, quick_compiler, damage):
    assert in_processes(1) == [True]
    (path,) = (tmp_path / "cache" / "vcl_radial").glob("step-*.so")
    whole = path.read_bytes()
    damage(path)
    assert in_processes(1) == [True]
    assert path.read_bytes() == whole
    assert path.is_file()
    assert not path.is_symlink()


@needs_compiler
def test_a_cache_folder_of_somebody_else_is_not_loaded_from(tmp_path, monkeypatch, quick_compiler):
    assert in_processes(1) == [True]
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert build.library() is None
    assert "XDG_CACHE_HOME" in str(build.unavailable())
