"""The report of a command: tidy table, summary, Markdown with the published figures, a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vcl_radial.runs.environment import distinct
from vcl_radial.runs.folder import not_written, write_atomically
from vcl_radial.tracks.regression import tables
from vcl_radial.tracks.regression.units import Planned, finished_result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(
    planned: Sequence[Planned],
    out: Path,
    to: Path,
    *,
    search_shares: Mapping[str, float] | None,
    command: str,
) -> None:
    """Write `results.csv`, `summary.csv`, `README.md` and a picture, and say where they lie.

    Args:
        planned: the finished units.
        out: where their results lie.
        to: where to write.
        search_shares: of each method whose settings were chosen, the share of its steps with which
            one was tried; None where none were chosen.
        command: that did it, in words.

    Raises:
        UserError: a result is gone, or something cannot be written.
    """
    from vcl_radial.tracks.regression import pictures

    tidy, environments = gather(planned, out)
    in_sequence = tidy["slice"].max() > 0
    means = tables.summary(tidy)
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
        if search_shares is not None:
            sections.append(_settings(tidy))
        picture = pictures.log_likelihoods(means)
        summary = means.drop(columns="slice")
    if diverged := int(means["diverged"].sum()):
        sections.append(f"{diverged} scores are missing: their training diverged.\n")
    page = "\n".join(
        [*_head(command, search_shares, in_sequence), *sections, _provenance(environments)]
    )
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


def gather(planned: Sequence[Planned], out: Path) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The tidy table of finished units, and where each came from.

    A set's posterior of all rows at once, beside a sequence, has the slice 0.

    Raises:
        UserError: a result is gone.
    """
    rows, environments = [], []
    for plan in planned:
        unit = plan.unit
        scores, where = finished_result(unit, out)
        environments.append(where)
        for s in scores:
            number = 0 if unit.slices == 1 else s.slice
            rows.append((unit.set, unit.method, plan.setting, s.split, number, s.metric, s.value))
    return pd.DataFrame(rows, columns=tables.COLUMNS), environments


def _head(command: str, search_shares: Mapping[str, float] | None, in_sequence: bool) -> list[str]:
    chosen = "Settings are those of the recipes."
    if search_shares is not None:
        chosen = "Settings were chosen split by split, on rows held out of its own training rows"
        chosen += f"{_tried_with(search_shares)}."
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
        f"Mean ± standard error over splits, in the original units. {about} {chosen}",
        "",
    ]


def _tried_with(search_shares: Mapping[str, float]) -> str:
    """With how many steps settings were tried, where not with all."""
    methods: dict[float, list[str]] = {}
    for name, share in search_shares.items():
        methods.setdefault(share, []).append(name)
    parts = [
        f"{100 * share:.0f} % of the steps ({', '.join(names)})"
        for share, names in methods.items()
        if share < 1
    ]
    return f", and tried with {', '.join(parts)}" if parts else ""


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


def _settings(tidy: pd.DataFrame) -> str:
    """How often which setting was chosen."""
    once = tidy.drop_duplicates(["set", "method", "split"])
    body = []
    for (name, method), group in once.groupby(["set", "method"], sort=False):
        counts = Counter(setting for setting in group["setting"] if setting)
        if counts:
            words = "; ".join(f"{setting}: {n}" for setting, n in counts.most_common())
            body.append(f"- {name}, {method}: {words}\n")
    return "## Settings chosen, by number of splits\n\n" + "".join(body)


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
