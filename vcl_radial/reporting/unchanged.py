"""Answer a repeated command from the report that it has written, if nothing has changed since.

A record beside the reports holds what `run` printed, a checksum of everything that the report is
made of, and the size and time of its files.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from vcl_radial.files.reading import read_bytes
from vcl_radial.reporting.labels import file_name
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder, write_atomically
from vcl_radial.runs.spec import RunSpec

_PACKAGE = Path(__file__).parents[1]


class Record(BaseModel):
    """The content of a record.

    Attributes:
        inputs: checksum of what the report is made of, see `inputs_of`.
        printed: what the command printed.
        files: size in bytes and time in ns of each file of the report, by its path.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    inputs: str
    printed: str
    files: dict[str, tuple[int, int]]


def report_of_command(
    runs: Sequence[RunSpec], context: RunContext, failed: Sequence[RunSpec] = ()
) -> bool:
    """Write the report of the benchmark of a command; its methods come first, in order.

    Args:
        runs: the runs of the command.
        context: device and folders of the runs.
        failed: runs whose failure the command has reported.

    Returns:
        Whether the report shows all finished runs of the command.

    Raises:
        UserError: as `write_report`.
    """
    order = list(dict.fromkeys(run.method for run in runs))
    to, benchmark = context.out / "report", runs[0].benchmark
    record = to / f"{file_name(benchmark)}.json"
    inputs = inputs_of(context.out / benchmark, order, context.data_dir)
    is_known = not failed and ":" not in runs[0].TRACK  # a user's track may have changed
    if is_known and (text := printed(record, inputs)) is not None:
        print(text, end="")
        return True
    from vcl_radial.reporting import manifest  # pandas takes a second to import
    from vcl_radial.reporting.write import write_report

    page = to / f"{file_name(benchmark)}.html"
    files = [page]
    with recorded(record, inputs, files) if is_known else nullcontext():
        missing = write_report(
            context.out,
            to,
            benchmark,
            order,
            data_dir=context.data_dir,
            failures={RunFolder(context.out, run).path for run in failed},
        )
        files += manifest.files_of(to, benchmark)
    return not any(RunFolder(context.out, run).path in missing for run in runs)


def inputs_of(folder: Path, *more: object) -> str:
    """A checksum of the files of runs and of this package by size and time, and of more.

    Args:
        folder: the folder of the runs of a benchmark.
        more: what else the report depends on.
    """
    content = hashlib.sha256(repr([*map(str, more), sys.version]).encode())
    for root, pattern in (folder, "*"), (_PACKAGE, "*.py"), (_PACKAGE, "page/*"):
        for path in sorted(root.rglob(pattern)):
            if path.is_file():
                content.update(repr((str(path), *_state(path))).encode())
    return content.hexdigest()


def printed(record: Path, inputs: str) -> str | None:
    """What the command printed, if the inputs and all files of the report are unchanged."""
    try:
        known = Record.model_validate_json(read_bytes(record))
        unchanged = all(_state(Path(name)) == state for name, state in known.files.items())
    except (OSError, ValidationError):
        return None
    return known.printed if unchanged and known.inputs == inputs else None


@contextmanager
def recorded(record: Path, inputs: str, files: list[Path]) -> Iterator[None]:
    """Record what is printed inside; nothing where a warning is printed or an error raised.

    Args:
        record: the file of the record.
        inputs: checksum of the inputs.
        files: the files of the report, which the caller fills in.
    """
    out, err = _Tee(sys.stdout), _Tee(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        yield
    is_whole = all(path.is_file() for path in files) and not err.text.getvalue()
    with suppress(ValueError):  # a name in it is no text
        if is_whole:
            states = {str(path): _state(path) for path in files}
            content = Record(inputs=inputs, printed=out.text.getvalue(), files=states)
            write_atomically(record, content.model_dump_json())
            return
    record.unlink(missing_ok=True)


class _Tee:
    """A stream that also keeps the text."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.text = stream, StringIO()

    def write(self, text: str) -> int:
        self.text.write(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
