"""Run jobs on the nodes of a Ray cluster; results are sent back, without a shared file system."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from vcl_radial.errors import UserError, bad_value
from vcl_radial.files.reading import LARGE, read_bytes
from vcl_radial.runs.attempt import Job, Report, RunOutcome, attempt
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder, write_atomically
from vcl_radial.runs.processes import safe_path
from vcl_radial.runs.track import AnyTrack

Files = dict[str, bytes]
"""The contents of files below a folder, by relative path."""

_PATIENCE = 5.0  # seconds after which `wait` returns even if no job has ended


@dataclass(eq=False)
class RayExecutor:
    """Runs jobs as tasks of Ray; if a node dies, the outcome of its runs is "lost".

    It uses the running cluster at an address, otherwise the cluster that Ray finds ($RAY_ADDRESS,
    or a cluster on this machine), otherwise it starts one. Each node needs this package, the
    methods, and the data (`data_dir` or $VCL_RADIAL_DATA on the node; otherwise they are
    downloaded).

    Attributes:
        address: HOST:PORT of a running cluster; None for the cluster that Ray finds, or a new one.
        jobs: number of jobs at a time; None for as many as fit into the cluster.
        cpus: CPU cores and threads per job.
        gpus: GPUs per job; with a fraction several jobs share one.
    """

    address: str | None = None
    jobs: int | None = None
    cpus: int = 1
    gpus: float = 0.0

    @property
    def device(self) -> str:
        """The device of the runs."""
        return "cuda" if self.gpus else "cpu"

    def start(self, track: AnyTrack, context: RunContext, on_step: Report) -> None:
        """Connect to the cluster; results come back as files, so no steps are reported.

        Raises:
            UserError: Ray is not installed, or no cluster answers at the address.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends no usage statistics
        try:
            import ray
        except ImportError:
            raise UserError("is missing; pip install 'vcl-radial[ray]'", at="Ray") from None
        self._ray: Any = ray
        self._stop_ray = not ray.is_initialized()
        if self._stop_ray:
            handler = signal.getsignal(signal.SIGTERM)
            try:
                check_reachable(self.address)
                with safe_path():
                    _init(ray, self.address)
            except (OSError, RuntimeError, ValueError) as error:
                reason = " ".join(str(error).split())
                raise bad_value("address", self.address, f"has no Ray cluster: {reason}") from None
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)  # Ray has replaced the handler
        self._track, self._context = track, replace(context, threads=self.cpus)
        self._task = ray.remote(_on_node).options(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_retries=0,
            scheduling_strategy="SPREAD",
        )
        self._running: dict[Any, Job] = {}

    def room(self) -> int:
        """The number of jobs that can be submitted now; an idle cluster always takes one."""
        most = self.jobs
        if most is None:
            resources: Mapping[str, float] = self._ray.cluster_resources()
            most = math.floor(resources.get("CPU", 0.0) / self.cpus)
            if self.gpus:
                most = min(most, math.floor(resources.get("GPU", 0.0) / self.gpus))
        return max(most, 1) - len(self._running)

    def submit(self, job: Job) -> None:
        """Send a job with the checkpoints of its runs."""
        files: Files = {}
        for run in job.runs:
            checkpoint: Path = RunFolder(self._context.out, run).checkpoint
            if checkpoint.is_file():
                files[str(checkpoint.relative_to(self._context.out))] = read_bytes(
                    checkpoint, LARGE
                )
        work = ForkingPickler.dumps((job, self._track, self._context)).tobytes()
        self._running[self._task.remote(sys.path, work, files)] = job

    def wait(self) -> Sequence[RunOutcome]:
        """Outcomes of the next job that ends; empty if none ends for a while."""
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=_PATIENCE)
        ends: list[RunOutcome] = []
        for reference in done:
            job = self._running.pop(reference)
            try:
                job_ends, files = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or type(error).__name__
                fault = f"its worker or node was lost ({' '.join(str(cause).split())})"
                ends += [RunOutcome(run, "lost", fault) for run in job.runs]
                continue
            self._write(files)
            ends += job_ends
        return ends

    def close(self) -> None:
        """Cancel the running jobs; their runs can be repeated."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running = {}
        if self._stop_ray:
            self._ray.shutdown()

    def _write(self, files: Files) -> None:
        """Write the files that came back; the markers of finished runs last."""
        for name in sorted(files, key=lambda name: Path(name).name == "done"):
            write_atomically(self._context.out / name, files[name])
            if Path(name).name == "done":
                (self._context.out / name).with_name("checkpoint.pt").unlink(missing_ok=True)


def check_reachable(address: str | None) -> None:
    """Check that HOST:PORT accepts connections; Ray would retry for minutes.

    Raises:
        OSError: the connection fails.
    """
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _init(ray: Any, address: str | None) -> None:
    """Connect to a cluster, or start one that only this machine can reach."""
    from ray._private import ray_constants, services
    from ray.job_config import JobConfig

    cluster = address or os.environ.get("RAY_ADDRESS") or services.find_bootstrap_address(None)
    alone = cluster in (None, "local")
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = before and not alone  # alone it listens on the loopback only
    try:
        ray.init(
            address="local" if alone else address,
            include_dashboard=False if alone else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
            # Without this, workers search the current folder first for modules.
            job_config=JobConfig(_client_job=True),
        )
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _on_node(folders: Sequence[str], work: bytes, files: Files) -> tuple[list[RunOutcome], Files]:
    """Run a job on a node, in a temporary folder.

    Args:
        folders: the sender's `sys.path`; the last entries are folders of a user's files.
        work: job, track and context; pickled, as they may hold instances of a user's classes.
        files: contents of files below the folder, by relative path.
    """
    sys.path += [folder for folder in folders if folder not in sys.path]
    job, track, context = ForkingPickler.loads(work)
    with tempfile.TemporaryDirectory(prefix="vcl-radial-") as name:
        folder = Path(name)
        for path, content in files.items():
            write_atomically(folder / path, content)
        ends = attempt(job, lambda run, step: None, track, replace(context, out=folder))
        results = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    return ends, results
