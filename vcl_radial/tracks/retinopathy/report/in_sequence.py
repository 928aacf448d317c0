"""What a network that saw sites one after another still knows of each."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from vcl_radial.report.figures.layout import Grid, fill, header_height, text_height
from vcl_radial.report.figures.style import FAINT, SMALL_SIZE, TEXT_SIZE, house_style, line_looks
from vcl_radial.tracks.retinopathy.report.pictures import DASHES
from vcl_radial.tracks.retinopathy.report.tables import (
    UNCERTAINTY_NAMES,
    cell,
    main_uncertainty,
    markdown,
    ranked,
)

SHOWN = (0.0, 0.3)
"""Shares referred."""


def section(means: pd.DataFrame, stem: str) -> str:
    """The tables: AUC on every set after every site, at each of `SHOWN`.

    Args:
        means: what `tables.means` gave.
        stem: of the picture.
    """
    sites, sets = list(dict.fromkeys(means["after"])), list(dict.fromkeys(means["set"]))
    chosen = ranked(means, "auc")
    parts = [
        "## Sites in sequence\n",
        f"The same network learns {', then '.join(sites)}. A method with a posterior takes the one "
        "that it has after a site as the prior of the next; one without goes on from its weights.",
        f"\n![{stem}]({stem}.png)\n",
    ]
    head = [f"{name} after {site}" for name in sets for site in sites]
    for share in SHOWN:
        rows = []
        for method, of_method in chosen.groupby("method", sort=False):
            at = of_method[of_method["referred"] == share]
            cells = [
                cell(at[(at["set"] == name) & (at["after"] == site)])
                for name in sets
                for site in sites
            ]
            rows.append([str(method), UNCERTAINTY_NAMES.get(main_uncertainty(at), ""), *cells])
        table = markdown(["method", "by", *head], rows)
        parts.append(f"AUC in % with {share:.0%} referred\n\n{table}")
    return "\n".join(parts)


def picture(means: pd.DataFrame, title: str, notices: Sequence[str]) -> Figure:
    """A column of panels for each test set, a line of them for each share referred.

    Args:
        means: what `tables.means` gave.
        title: of the figure.
        notices: what has to be said with the data.
    """
    sites, sets = list(dict.fromkeys(means["after"])), list(dict.fromkeys(means["set"]))
    chosen = ranked(means, "auc")
    methods = [str(name) for name in chosen["method"].unique()]
    looks = line_looks(methods)
    left, width = 0.62, max(1.7, 3.4 / len(sets))
    parts = ["AUC on each test set after each site", "mean ± standard error over seeds", *notices]
    notes = fill(parts, len(sets) * (left + width) - left, TEXT_SIZE)
    shown = chosen[chosen["referred"].isin(SHOWN)]
    error = shown["se_seeds"].fillna(0.0)
    low, high = float((shown["mean"] - error).min()), float((shown["mean"] + error).max())
    margin = 0.06 * max(high - low, 1.0)
    with house_style():
        grid = Grid(
            panels=len(SHOWN) * len(sets),
            per_line=len(sets),
            width=width,
            height=1.4,
            left=left,
            above=text_height(1, TEXT_SIZE) + 0.12,
            below=0.45,
            right=1.5,
            header=header_height(len(notes)) + 0.08,
        )
        figure = grid.figure()
        grid.write_header(figure, f"{title}: in sequence", notes)
        for panel in range(grid.panels):
            share, name = SHOWN[panel // len(sets)], sets[panel % len(sets)]
            axes = grid.axes(figure, panel)
            for k, method in enumerate(methods):
                aside = 0.05 * (k - (len(methods) - 1) / 2)
                own = shown[
                    (shown["method"] == method)
                    & (shown["set"] == name)
                    & (shown["referred"] == share)
                ].set_index("after")
                own = own.reindex(sites)
                look = looks[method]
                axes.errorbar(
                    [place + aside for place in range(len(sites))],
                    own["mean"],
                    own["se_seeds"].fillna(0.0),
                    color=look.style.colour,
                    marker=look.style.marker,
                    linestyle=DASHES[look.dashes],
                    markersize=3.5,
                    linewidth=1.1,
                    elinewidth=0.8,
                    label=method,
                )
            axes.set_title(f"{name}, {share:.0%} referred", fontsize=TEXT_SIZE, loc="left", pad=4)
            axes.set_xticks(range(len(sites)), sites)
            axes.set_xlim(-0.35, len(sites) - 0.65)
            axes.set_ylim(low - margin, min(high + margin, 100.5))
            axes.grid(axis="y", color=FAINT, linewidth=0.4)
            if grid.is_lowest(panel):
                axes.set_xlabel("after", labelpad=3)
            if grid.is_first_of_line(panel):
                axes.set_ylabel("AUC (%)")
        figure.axes[len(sets) - 1].legend(
            loc="upper left",
            bbox_to_anchor=(1.03, 1.0),
            borderaxespad=0.0,
            frameon=False,
            fontsize=SMALL_SIZE,
        )
    return figure
