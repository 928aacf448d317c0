"""Jobs on the nodes of a Ray cluster; results come back here, so nobody shares a file system."""

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

from vcl_radial.errors import UserError
from vcl_radial.files.reading import LARGE, read_bytes
from vcl_radial.runs.attempt import Job, Report, RunOutcome, attempt
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder, write_atomically
from vcl_radial.runs.processes import safe_path
from vcl_radial.runs.track import AnyTrack

Files = dict[str, bytes]
"""What lies below a folder, by relative path."""

_PATIENCE = 5.0  # seconds that `wait` waits before it lets its caller look around


@dataclass(frozen=True)
class OnRay:
    """Makes the executor of a Ray cluster.

    Attributes:
        address: of a running cluster; None for the one that Ray finds, or else one started here.
        jobs: at a time; None for as many as the cluster has room for.
        cpus: of each job, and its threads.
        gpus: of each job; a fraction lets several share one.
    """

    address: str | None = None
    jobs: int | None = None
    cpus: int = 1
    gpus: float = 0.0

    @property
    def device(self) -> str:
        """What the runs compute on."""
        return "cuda" if self.gpus else "cpu"

    def __call__(self, track: AnyTrack, place: RunContext, on_step: Report) -> RayExecutor:
        """The executor; results come back by files, so it reports no steps."""
        return RayExecutor(track, place, self.address, self.jobs, self.cpus, self.gpus)


class RayExecutor:
    """Jobs as tasks of Ray; the runs of a node that dies end as lost, to be submitted again.

    Uses the running cluster at an address, else the one that Ray finds ($RAY_ADDRESS, or one that
    was started on this machine), else it starts one here. Each node needs this package, the
    methods, and the data (`data_dir` or $VCL_RADIAL_DATA there, else downloaded).

    Args:
        track: of the runs.
        place: where results are written, here; data and device as on the nodes.
        address: of a cluster, or None.
        jobs: at a time; None for as many as the cluster has room for.
        cpus: of each job, and its threads.
        gpus: of each job; a fraction lets several share one.

    Raises:
        UserError: Ray is not installed, or there is no cluster at the address.
    """

    def __init__(
        self,
        track: AnyTrack,
        place: RunContext,
        address: str | None = None,
        jobs: int | None = None,
        cpus: int = 1,
        gpus: float = 0.0,
    ) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing about our runs is sent
        try:
            import ray
        except ImportError:
            raise UserError(
                "--executor ray: Ray is missing; pip install 'vcl-radial[ray]'"
            ) from None
        self._ray: Any = ray
        self._stop_ray = not ray.is_initialized()
        if self._stop_ray:
            handler = signal.getsignal(signal.SIGTERM)
            try:
                check_reachable(address)
                with safe_path():
                    _init(ray, address)
            except (OSError, RuntimeError, ValueError) as error:
                words = " ".join(str(error).split())
                raise UserError(f"--address {address}: no Ray cluster answers: {words}") from None
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)  # Ray has put its own there
        self.track = track
        self.place, self.jobs, self.cpus, self.gpus = place, jobs, cpus, gpus
        self._task = ray.remote(_on_node).options(
            num_cpus=cpus, num_gpus=gpus, max_retries=0, scheduling_strategy="SPREAD"
        )
        self._under_way: dict[Any, Job] = {}

    def room(self) -> int:
        """How many more jobs the cluster has room for, or one if it has none for any now."""
        most = self.jobs
        if most is None:
            there: Mapping[str, float] = self._ray.cluster_resources()
            most = math.floor(there.get("CPU", 0.0) / self.cpus)
            if self.gpus:
                most = min(most, math.floor(there.get("GPU", 0.0) / self.gpus))
        return max(most, 1) - len(self._under_way)

    def submit(self, job: Job) -> None:
        """Send a job, with the checkpoints that its runs go on from."""
        files: Files = {}
        for run in job.runs:
            checkpoint: Path = RunFolder(self.place.out, run).checkpoint
            if checkpoint.is_file():
                files[str(checkpoint.relative_to(self.place.out))] = read_bytes(checkpoint, LARGE)
        there = replace(self.place, threads=self.cpus)
        work = ForkingPickler.dumps((job, self.track, there)).tobytes()
        self._under_way[self._task.remote(sys.path, work, files)] = job

    def wait(self) -> Sequence[RunOutcome]:
        """How the runs of a job ended, once one has; none, if nothing has for a while."""
        done, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=_PATIENCE)
        ends: list[RunOutcome] = []
        for reference in done:
            job = self._under_way.pop(reference)
            try:
                found, files = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or type(error).__name__
                words = f"its worker or node was lost ({' '.join(str(cause).split())})"
                ends += [RunOutcome(run, "lost", words) for run in job.runs]
                continue
            self._write(files)
            ends += found
        return ends

    def close(self) -> None:
        """Stop what is under way; those runs are done another time."""
        for reference in self._under_way:
            self._ray.cancel(reference, force=True)
        self._under_way = {}
        if self._stop_ray:
            self._ray.shutdown()

    def _write(self, files: Files) -> None:
        """Write what came back; the markers of finished runs last."""
        for name in sorted(files, key=lambda name: Path(name).name == "done"):
            write_atomically(self.place.out / name, files[name])
            if Path(name).name == "done":
                (self.place.out / name).with_name("checkpoint.pt").unlink(missing_ok=True)


def check_reachable(address: str | None) -> None:
    """See that somebody listens at HOST:PORT; Ray would try for minutes.

    Raises:
        OSError: nobody does.
    """
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _init(ray: Any, address: str | None) -> None:
    """Connect to a cluster, else start one that only this machine reaches."""
    from ray._private import ray_constants, services
    from ray.job_config import JobConfig

    there = address or os.environ.get("RAY_ADDRESS") or services.find_bootstrap_address(None)
    alone = there in (None, "local")
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = before and not alone  # it listens on the loopback alone
    try:
        ray.init(
            address="local" if alone else address,
            include_dashboard=False if alone else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
            # The workers of other jobs look for modules in the current folder first.
            job_config=JobConfig(_client_job=True),
        )
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _on_node(folders: Sequence[str], work: bytes, files: Files) -> tuple[list[RunOutcome], Files]:
    """Carry a job out on a node, in a folder that is gone afterwards.

    Args:
        folders: where the sender looks for modules; the last ones are those of a user's files.
        work: job, track and place, pickled, as they may be of a user's classes.
        files: below the folder, by relative path.
    """
    sys.path += [folder for folder in folders if folder not in sys.path]
    job, track, place = ForkingPickler.loads(work)
    with tempfile.TemporaryDirectory(prefix="vcl-radial-") as name:
        folder = Path(name)
        for path, content in files.items():
            write_atomically(folder / path, content)
        ends = attempt(job, lambda run, step: None, track, replace(place, out=folder))
        found = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    return ends, found
