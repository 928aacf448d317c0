"""`price`, `benchmarks.speed`, `pages` and `check`, killed and stopped: files stay whole."""

import csv
import gzip
import io
import json
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from children import Child, RunOutcome, fork
from kills import cpu_of
from moments import Counter, Moment, struck
from work import Setting, Work, one_line

COMMANDS = (
    Work(("price", "split-digits-single-head", "--set", "options.units=8", "stream.tasks=2")),
    Work(("benchmarks.speed", "kl", "--quick", "--repeats", "1")),
    Work(("pages",)),
    Work(("check", "naive")),
)
_TEMPLATE = "{% set runs = csv('runs.csv') %}{{ record('cost.json').name }}\n"


def stopped(setting: Setting) -> Iterator[str | None]:
    """A signal before a change of the command's files, and after a random share of its work."""
    for work in COMMANDS:
        root, counter = _prepared(setting, work), Counter()
        end = struck(work, root, Moment("writing", None, 0), lambda: None, counter)
        if end.code != 0:
            raise RuntimeError(f"the undisturbed work fails: {end.last_line}")
        expected = _outcome(work, root / "out", end)
        for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            for when, root, end in _struck(setting, work, number, counter.total):
                fault = _ended(end, number) or _half_written(root / "out")
                if fault is None:
                    again = fork(work.arguments(root / "out"), root / "again").wait()
                    outcome = _outcome(work, root / "out", again)
                    fault = (
                        None if again.code == 0 else f"it does not get through: {again.last_line}"
                    )
                    fault = fault or _first_difference(outcome, expected)
                yield fault and f"{work.command[0]}, {signal.Signals(number).name} {when}: {fault}"


def _struck(
    setting: Setting, work: Work, number: int, total: int
) -> Iterator[tuple[str, Path, RunOutcome]]:
    """The command stopped at moments of both kinds: when, its folder, and how it ended."""
    count = min(max(1, setting.moments // 15), total)
    for at in sorted(setting.rng.sample(range(1, total + 1), count)):
        root, moment = _prepared(setting, work), Moment("writing", at, total)
        end = struck(work, root, moment, partial(signal.raise_signal, number))
        yield f"at {moment}", root, end

    def start(root: Path) -> Child:
        return fork(work.arguments(root / "out"), root / "output")

    if work.command[0] == "pages":  # it is over in no time
        return
    whole = cpu_of(setting, start)
    for _ in range(count if total else max(1, setting.moments // 15)):
        share, root = setting.rng.uniform(0.3, 0.85), _prepared(setting, work)
        child = start(root)
        if child.at_cpu(share * whole):
            child.signal_all(number)
        end = child.wait()
        if end.code != 0:
            yield f"after {share:.0%}", root, end


def _prepared(setting: Setting, work: Work) -> Path:
    """A new folder with the files that the command reads."""
    root = setting.new_folder()
    if work.command[0] == "pages":
        for name in ("first", "second"):
            folder = root / "out" / name
            folder.mkdir(parents=True)
            (folder / "README.md.jinja").write_text(_TEMPLATE)
            (folder / "runs.csv").write_text("method,seed,score\nnaive,0,1\n")
            (folder / "cost.json").write_text(json.dumps({"name": name}))
    return root


def _ended(end: RunOutcome, number: int) -> str | None:
    if number != signal.SIGKILL:
        return one_line(end, 130, "stopped")
    return None if end.code == -number else f"it was not killed: {end.last_line}"


def _outcome(work: Work, out: Path, end: RunOutcome) -> dict[str, object]:
    """What must be the same each time: files by their names, without the times that they hold."""
    files = {str(path.relative_to(out)): path for path in out.glob("**/*") if path.is_file()}
    if work.command[0] == "benchmarks.speed":
        return dict.fromkeys(files)
    contents: dict[str, object] = {name: path.read_bytes() for name, path in files.items()}
    if "results.csv.gz" in files:
        page = files["README.md"].read_bytes()
        contents["README.md"] = re.sub(rb"(less than )?\d+ minutes?", b"", page)
        rows = csv.DictReader(
            io.StringIO(gzip.decompress(files["results.csv.gz"].read_bytes()).decode())
        )
        contents["results.csv.gz"] = [{**row, "seconds": ""} for row in rows]
    return contents | ({"verdicts": end.output} if work.command[0] == "check" else {})


def _first_difference(outcome: dict[str, object], expected: dict[str, object]) -> str | None:
    for name in sorted({*outcome, *expected}):
        if name not in expected:
            return f"{name} is too many"
        if name not in outcome:
            return f"{name} is missing"
        if outcome[name] != expected[name]:
            return f"{name} has another content"
    return None


def _half_written(out: Path) -> str | None:
    """A file that is not whole, or None; hidden ones are those of a write under way."""
    ends = {".png": b"IEND\xaeB`\x82", ".svg": b"</svg>\n", ".md": b"\n", ".csv": b"\n"}
    for path in sorted(path for path in out.glob("**/*") if path.is_file()):
        content = path.read_bytes()
        try:
            if path.name.startswith("."):
                continue
            if path.suffix == ".json":
                json.loads(content)
            if path.suffix == ".gz":
                gzip.decompress(content)
        except (ValueError, EOFError, OSError) as error:
            return f"{path.relative_to(out)} is half written: {error}"
        if not content.endswith(ends.get(path.suffix, b"")):
            return f"{path.relative_to(out)} is half written"
    return None
