"""Draw our accuracies beside those of Hsu et al. 2018, Table 2.

python reports/published/picture.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from vcl_radial.reporting.figures.drawing import key_line, sheet
from vcl_radial.reporting.figures.style import INK, QUIET_INK, save
from vcl_radial.reporting.rows import Rows

HERE = Path(__file__).parent
HEADS = {"multi": "many heads", "single": "one head"}


def picture(ours: Rows, theirs: Rows) -> Figure:
    """Mean and standard deviation over seeds of each method, ours above theirs.

    Args:
        ours: rows with `heads, method, seed, average_accuracy`.
        theirs: rows with `heads, method, mean, deviation`.
    """
    methods = theirs.distinct("method")[::-1]
    notes = ["mean and standard deviation over 10 seeds"]
    key = [key_line("ours", INK, marker="o"), key_line("published", QUIET_INK, marker="s")]
    size = {"per_line": 2, "width": 2.6, "height": 0.22 * len(methods)}
    with sheet("Split MNIST", notes, [*HEADS.values()], key=key, grid="x", **size) as (
        figure,
        all_axes,
    ):
        for heads, axes in zip(HEADS, all_axes, strict=True):
            for line, method in enumerate(methods):
                of = ours.where(heads=heads, method=method).table["average_accuracy"]
                published = theirs.where(heads=heads, method=method)
                mean, deviation = published.number("mean"), published.number("deviation")
                looks = {"markersize": 3.5, "elinewidth": 0.9}
                axes.errorbar(of.mean(), line + 0.15, xerr=of.std(), color=INK, fmt="o", **looks)
                axes.errorbar(mean, line - 0.15, xerr=deviation, color=QUIET_INK, fmt="s", **looks)
            axes.set_yticks(range(len(methods)), methods if heads == "multi" else [])
            axes.set(ylim=(-0.7, len(methods) - 0.3), xlabel="accuracy (%)")
    return figure


if __name__ == "__main__":
    drawn = picture(Rows.read(HERE / "hsu.csv"), Rows.read(HERE / "hsu-published.csv"))
    save(drawn, HERE / "hsu")
