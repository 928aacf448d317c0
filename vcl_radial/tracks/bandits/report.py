"""The page of the bandits: Table 1 of the BAdam paper beside ours, and regret over the rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure

from vcl_radial.report import markdown
from vcl_radial.report.figures import save
from vcl_radial.report.figures.drawing import DASHED, DOTTED, Curve, key_line, line, sheet, to_csv
from vcl_radial.report.sections import Claim, Table, claims_table
from vcl_radial.runs.folder import not_written, write_atomically
from vcl_radial.runs.result_file import provenance
from vcl_radial.tracks.bandits.published import PUBLISHED
from vcl_radial.tracks.bandits.runner import BanditUnit

Result: TypeAlias = tuple[BanditUnit, Mapping[str, Any], Mapping[str, Any]]
"""What was played, its numbers, and where they came from."""

TITLES = {
    "badam": "BAdam",
    "mc-dropout": "MC dropout",
    "bbb": "BBB",
    "vadam": "VADAM",
    "radial": "radial (ours)",
    "greedy": "greedy",
    "uniform": "uniform",
}
_COLOURS = dict(
    zip(
        TITLES,
        ("#d55e00", "#cc79a7", "#e69f00", "#009e73", "#0072b2", "#737373", "#a6a6a6"),
        strict=True,
    )
)
_DASHES = {"radial": DASHED, "greedy": DOTTED}


def write_report(results: Sequence[Result], to: Path, command: str) -> None:
    """Write `README.md`, `bandits.csv` (every run), `regret.csv`, `.png` and `.svg`.

    Raises:
        UserError: something cannot be written.
    """
    curves = make_curves(results)
    stem = to / "regret"
    try:
        save(draw(curves, results), stem)
    except OSError as error:
        raise not_written(stem, error) from None
    write_atomically(stem.with_suffix(".csv"), to_csv(curves))
    write_atomically(to / "bandits.csv", _runs_csv(results))
    table = markdown.table(make_table(results))
    write_atomically(to / "README.md", _page(results, table, command))
    print(f"\n{table}\n{to / 'README.md'}, bandits.csv, regret.png, .svg, .csv")


def relative_rewards(results: Sequence[Result]) -> dict[tuple[str, str], list[float]]:
    """Cumulative reward over the optimum of every run, by data set and method."""
    found: dict[tuple[str, str], list[float]] = {}
    for unit, numbers, _ in results:
        found.setdefault((unit.dataset, unit.method), []).append(float(numbers["relative"]))
    return found


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (of n - 1), as the paper's table has them; nan of one value."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def make_table(results: Sequence[Result]) -> Table:
    """Ours beside the paper's, mean ± one standard deviation, and our mean regret."""
    rows = [["data set", "method", "published", "ours", "runs", "regret", "optimal reward"]]
    regrets: dict[tuple[str, str], list[float]] = {}
    optima: dict[tuple[str, str], list[float]] = {}
    for unit, numbers, _ in results:
        regrets.setdefault((unit.dataset, unit.method), []).append(float(numbers["regret"]))
        optima.setdefault((unit.dataset, unit.method), []).append(float(numbers["optimum"]))
    for key, values in relative_rewards(results).items():
        dataset, method = key
        published = PUBLISHED[dataset].get(method)
        rows.append(
            [
                dataset,
                TITLES[method],
                _cell(*published) if published else "–",
                _cell(*mean_and_deviation(values)),
                str(len(values)),
                f"{np.mean(regrets[key]):,.0f}",
                f"{np.mean(optima[key]):,.0f}",
            ]
        )
    return Table(rows[0], rows[1:])


def _cell(mean: float, deviation: float) -> str:
    return f"{mean:.2f}" if math.isnan(deviation) else f"{mean:.2f} ± {deviation:.2f}"


def make_curves(results: Sequence[Result]) -> list[Curve]:
    """Regret over the rounds: mean over runs, and one standard deviation where there are several.

    Per round, regret is the best action's expected reward less what was earned.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for unit, numbers, _ in results:
        groups.setdefault((unit.dataset, unit.method), []).append(numbers)
    curves = []
    for (dataset, method), runs in groups.items():
        regrets = np.array([np.subtract(run["optima"], run["rewards"]) for run in runs])
        mean = regrets.mean(0)
        places = runs[0]["places"]
        if len(runs) == 1:
            curves.append(Curve(dataset, method, places, mean.tolist()))
        else:
            deviation = regrets.std(0, ddof=1)
            low, high = (mean - deviation).tolist(), (mean + deviation).tolist()
            curves.append(Curve(dataset, method, places, mean.tolist(), low, high))
    return curves


def draw(curves: Sequence[Curve], results: Sequence[Result]) -> Figure:
    """A panel for each data set; what regret a uniform agent has is beyond its upper end."""
    datasets = list(dict.fromkeys(curve.panel for curve in curves))
    methods = [m for m in TITLES if any(curve.name == m for curve in curves)]
    runs = max(len(values) for values in relative_rewards(results).values())
    with sheet(
        "Regret of Thompson sampling",
        ["cumulative, lower is better", f"mean and one sd over up to {runs} runs"],
        datasets,
        per_line=max(2, len(datasets)),
        width=2.05,
        height=1.9,
        key=[key_line(TITLES[m], _COLOURS[m], linestyle=_DASHES.get(m, "-")) for m in methods],
    ) as (figure, panels):
        for axes, dataset in zip(panels, datasets, strict=False):
            of_panel = [curve for curve in curves if curve.panel == dataset]
            for curve in of_panel:
                line(axes, curve, _COLOURS[curve.name], linestyle=_DASHES.get(curve.name, "-"))
            others = [max(curve.y) for curve in of_panel if curve.name != "uniform"]
            top = max(others or [max(of_panel[0].y)])
            axes.set_ylim(0, 1.25 * top if top > 0 else 1)
            axes.set_xlim(0, None)
            axes.set_xlabel("round")
            axes.set_ylabel("regret, in rewards")
            axes.xaxis.set_major_locator(_few_ticks())
    return figure


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def make_claims(results: Sequence[Result]) -> list[Claim]:
    """What the paper concludes from its table, as far as our runs can tell."""
    found = relative_rewards(results)
    claims = []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        means = {m: float(np.mean(v)) for (d, m), v in found.items() if d == dataset}
        # Of rounds in which nothing could be earned there is nothing to tell.
        means = {m: mean for m, mean in means.items() if not math.isnan(mean)}
        told = ", ".join(f"{TITLES[m]} {mean:.2f}" for m, mean in means.items() if m != "uniform")
        for published, better, worse in (
            ("BAdam outperforms BBB", "badam", "bbb"),
            ("VADAM outperforms BAdam", "vadam", "badam"),
            *(
                [("the greedy bandit underperforms BAdam", "badam", "greedy")]
                if dataset == "mushroom"
                else []
            ),
        ):
            if {better, worse} <= set(means):
                claims.append(
                    Claim(
                        f"{dataset}: {published}",
                        told,
                        means[better] > means[worse],
                        "see what differs, below",
                    )
                )
    return claims


def _runs_csv(results: Sequence[Result]) -> str:
    lines = ["dataset,method,seed,rounds,reward,optimum,relative,regret"]
    for unit, numbers, _ in results:
        head = f"{unit.dataset},{unit.method},{unit.seed},{numbers['places'][-1]}"
        values = (numbers[key] for key in ("reward", "optimum", "relative", "regret"))
        lines.append(",".join([head, *(repr(float(value)) for value in values)]))
    return "\n".join([*lines, ""])


def _page(results: Sequence[Result], table: str, command: str) -> str:
    unit = results[0][0]
    settings = unit.settings
    rounds = {other.dataset: numbers["places"][-1] for other, numbers, _ in results}
    claims = make_claims(results)
    seeds = sorted({other.seed for other, _, _ in results})
    return "\n".join(
        [
            "# Contextual bandits by Thompson sampling",
            "",
            "Table 1 of Kessler et al. 2020 (BAdam), Appendix D.3 there, after Riquelme, Tucker "
            "and Snoek 2018: cumulative reward over that of the best actions, mean ± one standard "
            "deviation over runs.",
            "",
            table,
            "![Regret over the rounds](regret.png)",
            "",
            *([markdown.table(claims_table(claims))] if claims else []),
            "## Protocol",
            "",
            f"- rounds: {', '.join(f'{d} {n:,}' for d, n in rounds.items())}, rows in random order "
            "without repeats"
            + ("" if unit.rounds is None else f"; cut to {unit.rounds:,} by --rounds"),
            f"- every action is pulled {unit.pulls} times first; training after every {unit.every} "
            f"rounds, {settings.steps} batches of {settings.batch_size} from all that was seen",
            f"- networks: hidden layers {settings.hidden}, ReLU; learning rate "
            f"{settings.learning_rate:g} / (1 + {settings.decay:g} k) in step k of a training; the "
            f"gradient's norm at most {settings.clip:g} (not of BBB and radial)",
            "- mushroom: to leave it earns 0; to eat it 5, or if it is poisonous -35 or 5 with "
            "equal chances. Statlog and adult: 1 for the label, else 0",
            f"- seeds: {', '.join(map(str, seeds))}: of the order, the harm, the start, the "
            "batches and the draws",
            "- numbers: [bandits.csv](bandits.csv), [regret.csv](regret.csv)",
            "",
            "## What differs from the paper, and what it leaves open",
            "",
            "- Optimiser, noise, priors and the first precision of the other methods are not "
            "stated. Greedy and MC dropout: RMSprop (decay 0.9), dropout "
            f"{settings.dropout:g}; BBB: Adam, noise {settings.noise:g}, weights' noise from "
            f"{settings.initial_noise:g}, as in Riquelme et al.'s published settings; one prior "
            f"N(0, {settings.prior_scale:g}^2) for all; VADAM's noise starts at "
            f"{settings.vadam_noise:g}, and its N is rounds x batch size too. Those two were "
            "chosen after a look at the first 1,000 rounds of mushroom and statlog, seeds 0 "
            "and 1; nothing else was.",
            "- Riquelme et al. train BBB longer in its first trainings and draw each unit's input "
            "instead of the weights; here it is trained as the others, with one draw of the "
            "weights a batch.",
            "- BAdam: the equations of the authors' published optimiser for its variant with a "
            "Gaussian prior, N = rounds x batch size; their prior precision is not stated.",
            "- Adult has 92 columns here and 94 there, where the test part's incomes are spelled "
            "in another way. Statlog: the 43,500 training rows.",
            "- Radial is not in the paper: BBB with the radial family.",
            "",
            provenance(command, [environment for _, _, environment in results]),
        ]
    )
