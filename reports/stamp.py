"""Give committed evidence the current keys and digests: `python reports/stamp.py`.

Runs that are still being computed come from an earlier commit, with fewer keys in their specs, and
folders named by other digests. Run this script again after their evidence is committed; it does not
change evidence that it has stamped before. Golden files of digests are written by `UPDATE_GOLDEN=1
pytest tests/golden -k "digests or folders"`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vcl_radial.runs import tracks

HERE = Path(__file__).parent


def main() -> None:
    """Stamp every file of evidence."""
    for path in sorted(HERE.rglob("evidence.json")):
        runs = [stamped(run) for run in json.loads(path.read_text(encoding="utf-8"))]
        path.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")


def stamped(run: dict[str, Any]) -> dict[str, Any]:
    """A run of `evidence.json` with all keys of its spec, in a folder with its digest.

    A key that its commit did not have gets the current default, except the length of directions
    under RDP's prior, which were uniform.
    """
    spec, recipe = run["spec"], dict(run["spec"]["recipe"])
    recipe.pop("pretrain_epochs", None)  # 0 in all runs that are committed
    if recipe["posterior"] == "rdp":
        recipe.setdefault("prior_length", 0.0)
    today = tracks.from_tables(spec).validated({**spec, "recipe": recipe})
    folder = f"{today.benchmark}/{today.method}/seed-{today.seed}-{today.digest()}"
    return {**run, "folder": folder, "spec": today.settings()}


if __name__ == "__main__":
    main()
