"""Write the report of a folder of finished runs or of a sweep: what `vcl-radial report` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vcl_radial.config.command_lines import command_line
from vcl_radial.config.outside import consent
from vcl_radial.data.data_files import checked_folder
from vcl_radial.errors import UserError
from vcl_radial.reporting.write import MAIN_METHODS, write_report
from vcl_radial.sweeps.report import write_sweep_report


def report(
    folder: str | Path,
    to: str | Path | None = None,
    *,
    first: Sequence[str] = (),
    evidence: bool = False,
    trust: bool = False,
    data_dir: str | Path | None = None,
    top: int | None = None,
    by: str | None = None,
) -> Path:
    """Write the tables and figures of all finished runs below a folder, and one HTML page.

    For the folder of a sweep it writes the best recipes, all trials, the importance of keys, and
    the cost of scores.

    Args:
        folder: the `out` of `run`, or a sweep's folder.
        to: the folder of the report; None for the folder `report` within the first one.
        first: methods to show first; by default radial-vcl and gaussian-vcl.
        evidence: whether the runs are stored beside each report, in a few small files that `report`
            can read.
        trust: whether modules that files in the folder name may be imported; this runs code that
            the author of the folder has written.
        data_dir: the folder of the data, for photographs that the report shows.
        top: number of configurations per method to write as recipes, for a sweep; None for 1.
        by: the score to rank by, for a sweep; None for the objective of the sweep.

    Returns:
        The folder of the report; its page is `index.html`.

    Raises:
        UserError: there is nothing to report, an option is not for this folder, or a file cannot
            be written.
    """
    folder = Path(folder)
    of_sweeps: dict[str, Any] = {"top": top, "by": by}
    command = command_line(
        "report",
        str(folder),
        to=to,
        data_dir=data_dir,
        evidence=evidence,
        first=list(first),
        trust=trust,
        **of_sweeps,
    )
    into = folder / "report" if to is None else Path(to)
    if to is None and into.is_symlink():  # a folder from outside must not lead elsewhere
        raise UserError("is a link; remove it, or name a folder for the report with --to", into)
    is_sweep = (folder / "sweep.toml").is_file()
    foreign = {"first": first, "evidence": evidence} if is_sweep else of_sweeps
    if option := next((option for option, value in foreign.items() if value), None):
        other = "runs" if is_sweep else "a sweep"
        raise UserError(f"is for the folder of {other}, which {folder} is not", f"--{option}")
    data = checked_folder(data_dir)
    with consent(trust):
        if is_sweep:
            write_sweep_report(folder, into, top or 1, by, command, data)
        else:
            write_report(
                folder,
                into,
                first=MAIN_METHODS,
                named=first,
                command=command,
                data_dir=data,
                with_evidence=evidence,
            )
    return into
