"""`python tests/faults`: do to the suite what a bad night does, and see that nothing is lost.

It needs Linux, no data beside the digits that come with scikit-learn, and about a quarter of an
hour on two cores. It exits with code 1 if anything was lost.
"""

import argparse
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

# Before numpy is imported: this process is forked, which threads would not survive.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main() -> int:
    """Run the suite."""
    from kinds import KINDS

    names = [kind.name for kind in KINDS]
    parser = argparse.ArgumentParser(prog="python tests/faults", description=__doc__)
    parser.add_argument("--to", type=Path, metavar="FILE", help="write a page in Markdown")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", default=names)
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default: 0)")
    parser.add_argument(
        "--moments", type=int, default=30, help="of each kind of kill; the others go with it"
    )
    options = parser.parse_args()
    if not Path("/proc/self/stat").exists():
        parser.exit(2, "python tests/faults: needs Linux, whose /proc tells of processes\n")

    from page import page

    from vcl_radial.experiments.run_folder import write_atomically

    rows = []
    # Warnings of other people's packages, which each forked command would repeat.
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        for kind in KINDS:
            if kind.name in options.only:
                rows.append(_row(kind, Path(scratch) / kind.name, options))
    if options.to is not None:
        write_atomically(options.to, page(rows, sys.argv[1:], len(os.sched_getaffinity(0))))
    lost = sum(len(row.lost) for row in rows)
    print(f"{sum(row.cases for row in rows):,} cases, {lost} lost")
    return int(lost > 0)


def _row(kind, scratch: Path, options: argparse.Namespace):
    from children import prepare
    from page import Row
    from work import Setting

    prepare()
    scratch.mkdir()
    # Each kind draws its own, whichever others are asked for.
    rng = random.Random(f"{options.seed} {kind.name}")
    started, count, lost, skipped = time.monotonic(), 0, [], None
    for fault in kind.cases(Setting(scratch, rng, options.moments)):
        if fault is not None and fault.startswith("skipped: "):
            skipped = fault
            continue
        count += 1
        if fault is not None:
            lost.append(fault)
            print(f"  LOST  {fault}", flush=True)
    seconds = time.monotonic() - started
    words = skipped or f"{count - len(lost):,} of {count:,} held"
    print(f"{kind.name:16} {words}  ({seconds:.0f} s)", flush=True)
    return Row(kind.name, kind.title, kind.must, count, lost, skipped, seconds)


if __name__ == "__main__":
    sys.exit(main())
