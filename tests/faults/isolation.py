"""Mounts of one's own, which nobody else sees: a small disk, a disk that takes no writing."""

import ctypes
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from children import forked

_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
Fault = str | None


def isolated(cases: Callable[[], Iterator[Fault]], answers: Path) -> Iterator[Fault]:
    """The cases of a function that may mount, in a copy of this process with its own mounts."""

    def alone() -> Iterator[Fault]:
        if reason := _own_mounts():
            yield f"skipped: {reason}"
        else:
            yield from cases()

    return apart(alone, answers)


def apart(cases: Callable[[], Iterator[Fault]], answers: Path) -> Iterator[Fault]:
    """The cases of a function in a copy of this process, which may start threads."""

    def work() -> int:
        with answers.open("w") as file:
            for fault in cases():
                file.write(json.dumps(fault) + "\n")
                file.flush()
        return 0

    process = forked(work)
    _, status = os.waitpid(process, 0)
    yield from map(json.loads, answers.read_text().splitlines())
    if status:
        yield f"the suite itself failed (status {status})"


def mount(path: Path, kilobytes: int) -> None:
    """A disk of so many kilobytes."""
    path.mkdir(exist_ok=True)
    _call("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(path))


def remount(path: Path, options: str) -> None:
    """Give a mounted disk another size, or no writing."""
    _call("mount", "-o", f"remount,{options}", str(path))


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _own_mounts() -> str | None:
    """Leave the mounts of this machine alone from now on; why not, if it is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_MOUNTS | (0 if user == 0 else _NEW_USER)) != 0:
        return f"mounting is not allowed here ({os.strerror(ctypes.get_errno())})"
    try:
        if user:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        _call("mount", "--make-rprivate", "/")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"mounting is not allowed here ({error})"
    return None
