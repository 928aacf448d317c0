"""Runs whose loss is no finite number."""

import csv
from collections.abc import Iterator

from children import fork
from work import BENCHMARK, SWEEP, Setting, one_line, run, sweep

_LIMITS = "learning_rate = { low = 1e-4, high = 1e-1, log = true }"


def rows(setting: Setting) -> Iterator[str | None]:
    """Trials that diverge are rows that say when and why; the others are finished."""
    text = SWEEP.replace('"random"', '"grid"').replace("trials = 2\n", "")
    rates = "learning_rate = [1e-3, 1e30]"
    work = sweep(setting, text.replace(_LIMITS, rates), "diverging")
    root = setting.new_folder()
    end = fork(work.arguments(root / "out"), root / "output").wait()
    if end.code != 0:
        yield f"the sweep does not get through: {end.last_line}"
        return
    with (root / "out" / "diverging" / "trials.csv").open() as file:
        for row in csv.DictReader(file):
            expected = "diverged" if row["learning_rate"] == "1e+30" else "finished"
            name = f"{row['method']}, learning_rate = {row['learning_rate']}"
            if row["outcome"] != expected:
                yield f"{name}: {row['outcome']} ({row['words']})"
            elif expected == "diverged" and not ("task" in row["words"] and row["score"] == ""):
                yield f"{name}: the row does not say when: {row['words']}"
            else:
                yield None


def command(setting: Setting) -> Iterator[str | None]:
    """A `run` names the one that diverged and finishes the other."""
    root = setting.new_folder()
    recipe = root / "wild.toml"
    recipe.write_text('strategy = "naive"\nposterior = "none"\nlearning_rate = 1e30\n')
    work = run(methods=(str(recipe), "naive"))
    end = fork(work.arguments(root / "out"), root / "output").wait()
    fault = one_line(end, 1, "wild seed 0", "of task 1", "learning_rate", most=2)
    if fault is None and not list((root / "out" / BENCHMARK / "naive").glob("*/done")):
        fault = "the other run was not finished"
    yield fault
