"""`python tests/faults`: do to the suite what a bad night does, and see that nothing is lost.

It needs Linux, no data beside the digits that come with scikit-learn, and about an hour on two
cores. It exits with code 1 if anything was lost. Kinds of faults go on side by side,
each in a process of its own.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

# Before numpy is imported: this process is forked, which threads would not survive.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
sys.path[:0] = map(str, Path(__file__).resolve().parents[1:3])


def main() -> int:
    """Run the suite."""
    from kinds import KINDS

    names = [kind.name for kind in KINDS]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    parser = argparse.ArgumentParser(prog="python tests/faults", description=__doc__)
    parser.add_argument("--to", type=Path, metavar="FILE", help="write a page in Markdown")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=names,
        metavar="NAME",
        default=names,
        help="kinds of faults; rows of others stay on the page",
    )
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default: 0)")
    parser.add_argument(
        "--moments", type=int, default=30, help="of each kind of kill; the others go with it"
    )
    parser.add_argument("--jobs", type=int, default=cores, help="kinds at a time (one per core)")
    options = parser.parse_args()
    if not Path("/proc/self/stat").exists():
        parser.exit(2, "python tests/faults: needs Linux, whose /proc tells of processes\n")

    from children import cpu_of_ended, prepare
    from page import Kept, page, where_from

    from vcl_radial.runs.folder import write_atomically

    # Before anything is written: the page itself lies in the checkout whose state this tells.
    behind, started = where_from(sys.argv[1:], cores), time.monotonic()
    # Warnings of other people's packages, which each forked command would repeat.
    warnings.simplefilter("ignore")
    prepare()
    with (
        tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as scratch,
        ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as processes,
    ):
        try:
            rows = list(processes.map(partial(_row, Path(scratch), options), options.only))
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise
    if options.to is not None:
        earlier = options.to.read_text(encoding="utf-8") if options.to.exists() else ""
        figures = rows, behind, time.monotonic() - started, cpu_of_ended()
        write_atomically(options.to, page(*figures, Kept.of(earlier, options.only)))
    lost = sum(len(row.lost) for row in rows)
    print(f"{sum(row.cases for row in rows):,} cases, {lost} lost")
    return int(lost > 0)


def _row(scratch: Path, options: argparse.Namespace, name: str):
    from kinds import KINDS
    from page import Row
    from work import Setting

    (kind,) = (kind for kind in KINDS if kind.name == name)
    (scratch / name).mkdir()
    # Each kind draws its own, whichever others are asked for.
    rng = random.Random(f"{options.seed} {name}")
    started, count, lost, skipped = time.monotonic(), 0, [], None
    for fault in kind.cases(Setting(scratch / name, rng, options.moments)):
        if fault is not None and fault.startswith("skipped: "):
            skipped = fault
            continue
        count += 1
        if fault is not None:
            lost.append(fault)
            print(f"  LOST  {name}: {fault}", flush=True)
    seconds = time.monotonic() - started
    words = skipped or f"{count - len(lost):,} of {count:,} held"
    print(f"{name:16} {words}  ({seconds:.0f} s)", flush=True)
    return Row(name, kind.title, kind.must, count, lost, skipped, seconds)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
