"""The report of a command: tidy table, summary, Markdown with the published figures, a picture."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vcl_radial.runs.environment import distinct
from vcl_radial.runs.folder import RunFolder, not_written, write_atomically
from vcl_radial.runs.place import Place
from vcl_radial.tracks.regression import tables
from vcl_radial.tracks.regression.settings import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(runs: Sequence[Run], place: Place, to: Path) -> None:
    """Write `results.csv`, `summary.csv`, `README.md` and a picture, and say where they lie.

    Args:
        runs: of a command; what is not finished is missing.
        place: where they were carried out.
        to: where to write.

    Raises:
        UserError: something cannot be written.
    """
    from vcl_radial.tracks.regression import pictures

    tidy, environments = gather(runs, place.out)
    in_sequence = tidy["slice"].max() > 0
    means = tables.summary(tidy)
    settings = _settings(tidy)
    if in_sequence:
        gaps = tables.gaps(tidy)
        sections = [tables.gap_table(gaps, metric) for metric in tables.DECIMALS]
        picture: Figure = pictures.over_slices(tidy)
        summary = gaps
    else:
        sections = [tables.own_table(means, metric) for metric in tables.DECIMALS]
        if paired := tables.differences(tidy, "radial", "mfvi"):
            sections.append(paired)
        sections += _beside_the_papers(means)
        sections += settings
        picture = pictures.log_likelihoods(means)
        summary = means.drop(columns="slice")
    if missing := len(runs) - len(environments):
        sections.append(f"{missing} runs are missing: failed.txt in their folders says why.\n")
    head = _head(place.command or "", bool(settings), in_sequence)
    page = "\n".join([*head, *sections, _provenance(environments)])
    write_atomically(to / "results.csv", tidy.to_csv(index=False))
    write_atomically(to / "summary.csv", summary.to_csv(index=False))
    write_atomically(to / "README.md", page)
    stem = to / ("in-sequence" if in_sequence else "log-likelihood")
    from vcl_radial.report.figures import save

    try:
        paths = save(picture, stem)
    except OSError as error:
        raise not_written(stem, error) from None
    print(f"\n{sections[0]}")
    print(f"  {paths[0]}  (and .svg)\n  {to / 'README.md'}, results.csv, summary.csv")


def gather(runs: Sequence[Run], out: Path) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The tidy table of the finished ones among runs, and where each came from.

    A setting is what differs between the recipes of a method on one set. What was learned from all
    rows at once, beside a sequence, has the slice 0.
    """
    settings = _settings_of(runs)
    rows, environments = [], []
    for run in runs:
        folder = RunFolder(out, run)
        if not folder.finished():
            continue
        environments.append(json.loads((folder.path / "environment.json").read_text()))
        key = [run.data.name, run.method, settings[run.digest()], run.seed]
        scores = pd.read_csv(folder.path / "scores.csv")
        rows += [[*key, *row] for row in scores.itertuples(index=False)]
    return pd.DataFrame(rows, columns=tables.COLUMNS), environments


def _settings_of(runs: Sequence[Run]) -> dict[str, str]:
    """The keys and values in which runs of a method on one set differ, by digest."""
    recipes: dict[tuple[str, int | None, str], dict[str, dict[str, Any]]] = {}
    for run in runs:
        same = recipes.setdefault((run.data.name, run.data.slices, run.method), {})
        same[run.digest()] = run.recipe.model_dump()
    words = {}
    for same in recipes.values():
        first = next(iter(same.values()))
        differing = [key for key in first if any(r[key] != first[key] for r in same.values())]
        for digest, recipe in same.items():
            words[digest] = ", ".join(f"{key}={_text(recipe[key])}" for key in differing)
    return words


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def _head(command: str, chosen: bool, in_sequence: bool) -> list[str]:
    settings = "Settings are those of the recipes."
    if chosen:
        settings = "Settings were chosen split by split, on rows held out of its own training rows."
    about = (
        "The training rows come in slices along their first principal component, and each "
        "posterior is the prior of the next slice. The gap is the score after the last slice "
        "minus that of the posterior of all rows at once, trained for as many steps; paired by "
        "split."
        if in_sequence
        else "The log-likelihood is that of the mixture over weight samples, with the noise "
        "integrated out."
    )
    return [
        "# Regression in sequence" if in_sequence else "# Regression",
        "",
        f"    {command}",
        "",
        f"Mean ± standard error over splits, in the original units. {about} {settings}",
        "",
    ]


def _beside_the_papers(means: pd.DataFrame) -> list[str]:
    parts = [
        tables.beside(
            means,
            "farquhar2020",
            [("mfvi", "mfvi"), ("radial", "radial"), ("mc-dropout", "dropout")],
            metric,
        )
        for metric in tables.DECIMALS
    ]
    parts.append(
        tables.beside(
            means,
            "oh2020",
            [("mfvi", "vi"), ("mc-dropout", "dropout"), ("rdp", "rdp")],
            "log_likelihood",
        )
    )
    found = [part for part in parts if part is not None]
    if not found:
        return []
    sections = ["## Beside the papers\n", *found]
    sections.append(
        "Of the means, to the two decimals that are published:\n\n"
        + "".join(f"- {sentence}\n" for sentence in tables.verdicts(means))
    )
    if odd := tables.impossible_pairs():
        sections.append(
            "Some published pairs do not belong to one model with one noise for all rows, and can "
            "be no aim:\n\n" + "".join(f"- {sentence}\n" for sentence in odd)
        )
    if needs := tables.implied_errors(means, "oh2020", "rdp", "rdp"):
        sections.append(
            "What RMSE the RDP column would need (the paper gives none), beside ours; where it is "
            f"far below any known, the figures have another unit:\n\n{needs}"
        )
    return sections


def _settings(tidy: pd.DataFrame) -> list[str]:
    """How often which setting was chosen, where there was a choice."""
    once = tidy.drop_duplicates(["set", "method", "split"])
    body = []
    for (name, method), group in once.groupby(["set", "method"], sort=False):
        counts = Counter(setting for setting in group["setting"] if setting)
        if counts:
            words = "; ".join(f"{setting}: {n}" for setting, n in counts.most_common())
            body.append(f"- {name}, {method}: {words}\n")
    return ["## Settings chosen, by number of splits\n\n" + "".join(body)] if body else []


def _provenance(environments: Sequence[dict[str, Any]]) -> str:
    torch_versions = sorted({str(where["packages"]["torch"]) for where in environments})
    minutes = sum(where["seconds"] for where in environments) / 60
    return "\n".join(
        [
            "## Where the numbers come from",
            "",
            f"- commit: {distinct(environments, 'commit')}",
            f"- processor: {distinct(environments, 'processor')}, one thread a program, torch "
            f"{', '.join(torch_versions)}",
            f"- {minutes:.1f} minutes of training and scoring in all, the choice of settings aside",
            "",
        ]
    )
