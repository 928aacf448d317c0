"""Give committed evidence the names, keys and digests of today: `python reports/stamp.py`.

Runs that are still being computed come from an earlier commit, with fewer keys in their specs, and
folders named by other digests. After their evidence is committed this is run once more, and does
nothing to what it has stamped before. Golden files of digests are written by
`UPDATE_GOLDEN=1 pytest tests/golden -k "digests or folders"`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

from vcl_radial.runs import tracks

HERE = Path(__file__).parent

GAUSSIAN, RADIAL = "gaussian-vcl", "radial-vcl"
REGRESSION = {
    "mfvi": GAUSSIAN,
    "radial": RADIAL,
    "rdp": "rdp-vcl",
    "rdp-noise-prior": "rdp-vcl-noise-prior",
    "laplace": "laplace-linearised",
    "linear": "bayes-linear",
}
METHODS = {
    "uci/results.csv.gz": REGRESSION,
    "uci/in-sequence/results.csv.gz": REGRESSION,
    "seeds/badam-bandits/bandits.csv": {"bbb": GAUSSIAN, "radial": RADIAL, "greedy": "naive"},
    "sweeps/fig4-retinopathy/synthetic/trials.csv": {"mfvi": GAUSSIAN, "radial": RADIAL},
}
"""Methods of tables that had other names, and those of today."""


def main() -> None:
    """Stamp every file of evidence, and every table whose methods had other names."""
    for path in sorted(HERE.rglob("evidence.json")):
        runs = [stamped(run) for run in json.loads(path.read_text(encoding="utf-8"))]
        path.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    for name, methods in METHODS.items():
        _rename_methods(HERE / name, methods)


def stamped(run: dict[str, Any]) -> dict[str, Any]:
    """A run of `evidence.json` with all keys of its spec, in a folder with its digest.

    A key that its commit did not have gets today's default, but the length of directions under
    RDP's prior, which were uniform.
    """
    spec, recipe = run["spec"], dict(run["spec"]["recipe"])
    recipe.pop("pretrain_epochs", None)  # 0 in all runs that are committed
    if recipe["posterior"] == "rdp":
        recipe.setdefault("prior_length", 0.0)
    today = tracks.from_tables(spec).validated({**spec, "recipe": recipe})
    folder = f"{today.benchmark}/{today.method}/seed-{today.seed}-{today.digest()}"
    return {**run, "folder": folder, "spec": today.settings()}


def _rename_methods(path: Path, methods: dict[str, str]) -> None:
    """Write a table anew where it has a method of another name, and nothing else of it."""
    text = path.read_bytes()
    table = (gzip.decompress(text) if path.suffix == ".gz" else text).decode()
    head, *rows = csv.reader(io.StringIO(table))
    column = head.index("method")
    renamed = [[*r[:column], methods.get(r[column], r[column]), *r[column + 1 :]] for r in rows]
    if renamed == rows:
        return
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *renamed])
    content = out.getvalue().encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


if __name__ == "__main__":
    main()
