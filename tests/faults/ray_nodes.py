"""A node of a Ray cluster, or a worker on it, killed while it carries runs out."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from children import Child, begin
from isolation import apart
from work import Setting, Work, ends_well, run

_METHOD = "radial-vcl"


def killed(setting: Setting) -> Iterator[str | None]:
    """`--executor ray` on two nodes; the second one, or a worker, is killed when both work."""

    def cases() -> Iterator[str | None]:
        try:
            from ray.cluster_utils import Cluster
        except ImportError:
            yield "skipped: Ray is not installed"
            return
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        work = run("batch_size=1", methods=(_METHOD,), seeds=2)
        for victim in ("node", "worker"):
            cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
            node = cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
            try:
                root = setting.new_folder()
                arguments = work.arguments(root / "out", 2)
                child = begin([*arguments, *_on(cluster.address)], root / "output")
                workers = _two_at_work(child)
                if victim == "node":
                    cluster.remove_node(node, allow_graceful=False)
                elif workers:
                    os.kill(setting.rng.choice(workers), signal.SIGKILL)
                yield _outcome(setting, work, root, child, victim, workers)
            finally:
                cluster.shutdown()

    return apart(cases, setting.scratch / "ray.json")


def _on(address: str) -> list[str]:
    return ["--executor", "ray", "--address", address]


def _outcome(
    setting: Setting, work: Work, root: Path, child: Child, victim: str, workers: list[int]
) -> str | None:
    """What was lost; the command may finish the run elsewhere, or say that it was lost."""
    end = child.wait()
    fault = None if len(workers) == 2 else "two workers were never at work"
    if "Traceback" in end.output + end.errors or end.code not in (0, 1):
        fault = fault or end.last_line
    if end.code == 1 and "was lost" not in end.errors:
        fault = fault or f"it does not say that a run was lost: {end.last_line}"
    fault = fault or ends_well(setting, work, root)
    return fault and f"{victim}: {fault}"


def _two_at_work(child: Child, seconds: float = 120.0) -> list[int]:
    """The processes of Ray that carry runs out, once there are two."""
    until, workers = time.monotonic() + seconds, list[int]()
    while child.poll() is None and len(workers) < 2 and time.monotonic() < until:
        time.sleep(0.1)
        names = {path: _name(path) for path in Path("/proc").glob("[0-9]*/cmdline")}
        workers = [int(path.parts[2]) for path, name in names.items() if b"ray::_on_node" in name]
    time.sleep(1.0)
    return workers


def _name(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""
