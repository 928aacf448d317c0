"""The work that is disturbed: tiny runs of every track, a sweep, a report; what must come out."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from children import RunOutcome, fork
from small_data import small_mushrooms

BENCHMARK = "split-digits-multi-head"
METHODS = ("naive", "radial-vcl")
TINY = ("epochs=2", "hidden=[8]", "eval_samples=2", "stream.tasks=2")
OTHERS = {
    "retinopathy-synthetic": (
        ("naive", "radial-vcl"),
        (
            *("epochs=2", "channels=1", "batch_size=8", "eval_samples=2"),
            *("data.size=8", "data.patients=40", "data.validation=0.2"),
        ),
    ),
    "diabetes": (("gaussian-vcl", "mc-dropout"), ("steps=200", "eval_samples=4")),
    "bandit-mushroom": (("naive", "radial-vcl"), ("data.rounds=61", "steps=2")),
}
"""Methods and settings of a benchmark of each of the other tracks."""
SWEEP = f"""
kind = "random"
benchmark = "{BENCHMARK}"
method = ["naive", "radial-vcl"]
seeds = 1
trials = 2

[fixed]
hidden = [8]
eval_samples = 2
epochs = 1
stream = {{ tasks = 2 }}

[search]
learning_rate = {{ low = 1e-4, high = 1e-1, log = true }}
"""
RESULTS = (
    *("accuracy.csv", "layers.csv", "metrics.json", "spec.toml", "results.csv", "trials.csv"),
    *("predictions.csv", "calibration.csv", "scores.csv", "rewards.csv"),
)
"""Files that depend on what is asked for alone, to the byte."""


@dataclass(frozen=True)
class Setting:
    """What all faults share.

    Attributes:
        scratch: a folder of the suite's own.
        rng: where its choices come from.
        moments: how many moments are chosen, of each fault that strikes at random ones.
    """

    scratch: Path
    rng: random.Random
    moments: int
    _known: dict[str, dict[str, bytes]] = field(default_factory=dict)
    _numbers: list[int] = field(default_factory=list)

    def new_folder(self) -> Path:
        """A folder that nobody has used."""
        self._numbers.append(0)
        path = self.scratch / f"case-{len(self._numbers)}"
        path.mkdir()
        return path

    def undisturbed(self, work: "Work") -> dict[str, bytes]:
        """The results of a work that nothing happens to."""
        key = " ".join(work.arguments(Path("out")))
        if key not in self._known:
            root = self.new_folder()
            end = fork(work.arguments(root / "out"), root / "output").wait()
            if end.code != 0:
                raise RuntimeError(f"the undisturbed work fails: {end.last_line}\n{end.errors}")
            self._known[key] = results(root / "out")
        return self._known[key]


@dataclass(frozen=True)
class Work:
    """A command that is to be disturbed."""

    command: tuple[str, ...]
    file: Path | None = None

    def __str__(self) -> str:
        """As messages have it."""
        return " ".join(self.command[:2] if self.command[0] == "run" else self.command[:1])

    def arguments(self, out: Path, jobs: int = 1) -> list[str]:
        """Its arguments."""
        file = [str(self.file)] if self.file else []
        name, *rest = self.command
        if name in ("report", "price", "benchmarks.speed"):
            return [*self.command, "--to", str(out)]
        if name in ("pages", "check"):
            return [*self.command, *([str(out)] if name == "pages" else [])]
        return [name, *file, *rest, "--device", "cpu", "--jobs", str(jobs), "--out", str(out)]


def run(*more: str, methods: Sequence[str] = METHODS, seeds: int = 1) -> Work:
    """A `run`; `more` are settings of the recipe."""
    settings = ("--set", *TINY, *more)
    return Work(("run", BENCHMARK, "--method", *methods, "--seeds", str(seeds), *settings))


def others(setting: Setting) -> list[Work]:
    """A `run` of each of the other tracks."""
    data = setting.scratch / "data"
    if not data.exists():
        small_mushrooms(data / "bandits")
    return [
        Work(
            ("run", name, "--method", *methods, "--data-dir", str(data), "--set", *settings),
        )
        for name, (methods, settings) in OTHERS.items()
    ]


def report(setting: Setting) -> Work:
    """A `report` of finished runs."""
    root = setting.new_folder()
    fork(run().arguments(root / "out"), root / "output").wait()
    return Work(("report", str(root / "out")))


def works(setting: Setting) -> list[Work]:
    """All of them."""
    return [run(), *others(setting), sweep(setting), report(setting)]


def sweep(setting: Setting, text: str = SWEEP, name: str = "tiny") -> Work:
    """A `sweep`."""
    file = setting.scratch / f"{name}.toml"
    file.write_text(text)
    return Work(("sweep",), file)


def results(out: Path) -> dict[str, bytes]:
    """The result files below a folder by their names."""
    paths = (path for name in RESULTS for path in out.glob(f"**/{name}"))
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(paths)}


def lost(setting: Setting, work: Work, out: Path) -> str | None:
    """What is not as if nothing had happened, or None."""
    expected, actual = setting.undisturbed(work), results(out)
    for name, content in expected.items():
        if name not in actual:
            return f"{name} is missing"
        if actual[name] != content:
            return f"{name} has other bytes"
    if extra := sorted(actual.keys() - expected.keys()):
        return f"{extra[0]} is too many"
    return left_over(out)


def left_over(out: Path) -> str | None:
    """A file that should have gone, or None."""
    strays = [path for path in out.glob("**/*") if path.name.startswith(".")]
    strays += [path.with_name("checkpoint.pt") for path in out.glob("**/done")]
    strays += out.glob("**/*-journal")
    stray = next((path for path in sorted(strays) if path.exists()), None)
    return f"{stray.relative_to(out)} was left behind" if stray else None


def ends_well(setting: Setting, work: Work, root: Path) -> str | None:
    """Give the same command again until it is through, at most thrice; then what was lost."""
    for attempt in range(3):
        end = fork(work.arguments(root / "out"), root / f"again-{attempt}").wait()
        if "Traceback" in end.errors + end.output:
            return f"a traceback when it went on: {end.last_line}"
        if end.code == 0:
            return lost(setting, work, root / "out")
    return f"the same command does not get through: {end.last_line}"


def one_line(end: RunOutcome, code: int, *parts: str, most: int = 1) -> str | None:
    """What is wrong with how a command refused: its code, or that it did not say why in a line.

    Args:
        end: of the command.
        code: that it is to have.
        parts: what must stand there.
        most: so many lines may there be: of each run that came to harm, or was passed over.
    """
    if end.code != code:
        return f"code {end.code} in root of {code}: {end.last_line}"
    lines = [line for line in end.errors.splitlines() if line.strip()]
    if not 1 <= len(lines) <= most or "Traceback" in end.output:
        return f"{len(lines)} lines on stderr: {end.last_line}"
    if strange := [
        line for line in lines if not line.startswith(("vcl-radial", "reports", "passed over: "))
    ]:
        return f"not a message: {strange[0]}"
    absent = [part for part in parts if part not in end.errors]
    return f"it does not say {absent[0]!r}: {lines[0]}" if absent else None
