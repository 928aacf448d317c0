"""Sections of a report on a bandit: Table 1 of the BAdam paper beside ours, and regret."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from vcl_radial.errors import DataError
from vcl_radial.files.reading import read_text
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.metrics.verdicts import verdicts_of_family
from vcl_radial.reporting.blocks import (
    Claim,
    Column,
    Figure,
    Section,
    Table,
    Text,
    claims_table,
    with_spread,
)
from vcl_radial.reporting.figures.drawing import (
    DASHED,
    DOTTED,
    Curve,
    key_line,
    line,
    sheet,
    to_csv,
)
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.bandits.published import CONCLUSIONS, PUBLISHED
from vcl_radial.tracks.bandits.settings import Recipe

TITLES = {
    "badam": "BAdam",
    "mc-dropout": "MC dropout",
    "gaussian-vcl": "gaussian-vcl (BBB)",
    "vadam": "VADAM",
    "radial-vcl": "radial-vcl (ours)",
    "naive": "naive (greedy)",
    "uniform": "uniform",
}
_COLOURS = dict(
    zip(
        TITLES,
        ("#d55e00", "#cc79a7", "#e69f00", "#009e73", "#0072b2", "#737373", "#a6a6a6"),
        strict=True,
    )
)
_DASHES = {"radial-vcl": DASHED, "naive": DOTTED}
_COLUMNS = ["round", "reward", "optimum"]


def read(path: Path) -> dict[str, pd.DataFrame]:
    """Read the table of a finished game.

    Raises:
        DataError: the table is damaged.
    """
    try:
        table = pd.read_csv(io.StringIO(read_text(path / "rewards.csv")))
    except (OSError, ValueError) as error:
        raise DataError(f"rewards.csv cannot be read: {error}") from None
    if list(table.columns) != _COLUMNS or table.empty or table.isna().any(axis=None):
        raise DataError(f"rewards.csv does not hold numbers in {', '.join(_COLUMNS)}")
    return {"rewards": table}


def sections(runs: Sequence[FinishedRun]) -> list[Section]:
    """Sections on the games of one table.

    Raises:
        DataError: the games have different numbers of rounds.
    """
    rounds = {int(run.tables["rewards"]["round"].iloc[-1]) for run in runs}
    if len(rounds) > 1:
        raise DataError("its games have different numbers of rounds")
    name, claims = str(runs[0].spec.data["table"]), make_claims(runs)
    curves = make_curves(runs)
    scores: list[Text | Table | Figure] = [
        make_table(runs),
        Text(
            "Cumulative reward over that of the best actions, mean ± one standard deviation over "
            "games, beside Table 1 of Kessler et al. 2020 (BAdam)."
        ),
        Figure("regret", partial(draw, curves, runs), f"Regret over the rounds, {name}"),
    ]
    files = {"games.csv": _games_csv(runs), "regret.csv": to_csv(curves)}
    parts = [Section("Rewards", scores, files)]
    if claims:
        parts.append(Section("What the paper concludes", [claims_table(claims)]))
    return [*parts, _protocol(runs, rounds.pop()), _differences(runs)]


def totals(run: FinishedRun) -> tuple[float, float]:
    """The reward of a game, and the expected reward of the best actions."""
    last = run.tables["rewards"].iloc[-1]
    return float(last["reward"]), float(last["optimum"])


def relative_rewards(runs: Sequence[FinishedRun]) -> dict[str, list[float]]:
    """Cumulative reward over the optimum of every game, by method; nan if nothing can be earned."""
    values: dict[str, list[float]] = {}
    for run in runs:
        reward, optimum = totals(run)
        values.setdefault(run.method, []).append(reward / optimum if optimum else math.nan)
    return values


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (n - 1), as in the paper's table; nan for one value."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def make_table(runs: Sequence[FinishedRun]) -> Table:
    """Ours beside the paper's, mean ± one standard deviation, and our mean regret."""
    name = str(runs[0].spec.data["table"])
    rows = []
    for method, values in relative_rewards(runs).items():
        games = [totals(run) for run in runs if run.method == method]
        published = PUBLISHED[name].get(method)
        rows.append(
            [
                TITLES.get(method, method),
                with_spread(*published, 2) if published else "–",
                with_spread(*mean_and_deviation(values), 2),
                str(len(values)),
                f"{np.mean([optimum - reward for reward, optimum in games]):,.0f}",
                f"{np.mean([optimum for _, optimum in games]):,.0f}",
            ]
        )
    columns = (
        Column("method", is_text=True),
        Column("published"),
        Column("ours", better="higher"),
        Column("games"),
        Column("regret", better="lower"),
        Column("optimal reward"),
    )
    return Table(columns, rows)


def make_curves(runs: Sequence[FinishedRun]) -> list[Curve]:
    """Regret over the rounds: mean over games, with one standard deviation if there are several.

    Per round, regret is the best action's expected reward minus the earned reward.
    """
    groups: dict[str, list[NDArray[np.float64]]] = {}
    for run in runs:
        table = run.tables["rewards"]
        regret = (table["optimum"] - table["reward"]).to_numpy(dtype=float)
        groups.setdefault(run.method, []).append(regret)
    name = str(runs[0].spec.data["table"])
    rounds = runs[0].tables["rewards"]["round"].tolist()
    curves = []
    for method, games in groups.items():
        mean = np.mean(games, axis=0)
        if len(games) == 1:
            curves.append(Curve(name, method, rounds, mean.tolist()))
        else:
            deviation = np.std(games, axis=0, ddof=1)
            low, high = (mean - deviation).tolist(), (mean + deviation).tolist()
            curves.append(Curve(name, method, rounds, mean.tolist(), low, high))
    return curves


def draw(curves: Sequence[Curve], runs: Sequence[FinishedRun]) -> Picture:
    """Draw regret over the rounds; a uniform agent's regret is beyond the upper end."""
    methods = sorted({curve.name for curve in curves}, key=_order)
    games = max(len(values) for values in relative_rewards(runs).values())
    over = f"mean and one sd over up to {games} games" if games > 1 else "one game"
    keys = [key_line(TITLES.get(m, m), _colour(m), linestyle=_DASHES.get(m, "-")) for m in methods]
    with sheet(
        "Regret of Thompson sampling",
        ["cumulative, lower is better", over],
        [curves[0].panel],
        per_line=2,
        width=3.2,
        height=2.2,
        key=keys,
    ) as (figure, panels):
        axes = panels[0]
        for curve in curves:
            line(axes, curve, _colour(curve.name), linestyle=_DASHES.get(curve.name, "-"))
        highest = [max(curve.y) for curve in curves if curve.name != "uniform"]
        top = max(highest or [max(curves[0].y)])
        axes.set_ylim(0, 1.25 * top if top > 0 else 1)
        axes.set_xlim(0, None)
        axes.set_xlabel("round")
        axes.set_ylabel("regret, in rewards")
        axes.xaxis.set_major_locator(MaxNLocator(4))
    return figure


def _order(method: str) -> tuple[int, str]:
    names = list(TITLES)
    return (names.index(method) if method in names else len(names)), method


def _colour(method: str) -> str:
    return _COLOURS.get(method, "#56b4e9")


def make_claims(runs: Sequence[FinishedRun]) -> list[Claim]:
    """Conclusions of the paper from its table, judged by our games."""
    name = str(runs[0].spec.data["table"])
    rewards: dict[str, dict[int, float]] = {}
    for run in runs:
        reward, optimum = totals(run)
        if optimum:  # else no relative reward is defined
            rewards.setdefault(run.method, {})[run.spec.seed] = reward / optimum
    statements: list[tuple[str, str]] = []
    games: list[list[float]] = []
    for published, better, worse in CONCLUSIONS[name]:
        if {better, worse} <= rewards.keys():
            first, second = rewards[better], rewards[worse]
            differences = [first[seed] - second[seed] for seed in first if seed in second]
            ours = (
                f"{TITLES[better]} less {TITLES[worse]}: "
                f"{with_spread(*mean_and_standard_error(differences), 3, sign=True)} "
                f"over {len(differences)} games"
            )
            statements.append((f"{name}: {published}", ours))
            games.append(differences)
    return [
        Claim(*statement, verdict, "see what differs, below")
        for statement, verdict in zip(statements, verdicts_of_family(games), strict=True)
    ]


def _games_csv(runs: Sequence[FinishedRun]) -> str:
    rows = []
    for run in runs:
        reward, optimum = totals(run)
        rows.append(
            {
                "method": run.method,
                "seed": run.spec.seed,
                "rounds": int(run.tables["rewards"]["round"].iloc[-1]),
                "reward": reward,
                "optimum": optimum,
                "relative": reward / optimum if optimum else math.nan,
                "regret": optimum - reward,
            }
        )
    return pd.DataFrame(rows).to_csv(index=False)


def _protocol(runs: Sequence[FinishedRun], rounds: int) -> Section:
    data, recipe = runs[0].spec.data, _recipe(runs[0])
    cut = "" if data.get("rounds") is None else ", cut by data.rounds"
    return Section(
        "Protocol",
        [
            Text(
                points=[
                    f"rounds: {rounds:,}, rows in random order without repeats{cut}",
                    f"every action is pulled {data['pulls']} times first; training after every "
                    f"{data['every']} rounds, {recipe['steps']} batches of {recipe['batch_size']} "
                    "from all that was seen",
                    f"networks: hidden layers {recipe['hidden']}, ReLU; learning rate "
                    f"{recipe['learning_rate']:g} / (1 + {recipe['decay']:g} k) in step k of a "
                    f"training; the gradient's norm at most {recipe['clip']:g} without a posterior "
                    "in the network",
                    f"one prior N(0, {recipe['prior_scale']:g}^2) of every weight",
                    "mushroom: to leave it earns 0; to eat it 5, or if it is poisonous -35 or 5 "
                    "with equal chances; statlog and adult: 1 for the label, else 0",
                    "the seed is that of the order, the harm, the start, the batches and the draws",
                ]
            )
        ],
    )


_DEVIATIONS = {
    "naive": "greedy: RMSprop with a decay of 0.9",
    "mc-dropout": "MC dropout: RMSprop with a decay of 0.9, a rate of {rate}, and no prior",
    "gaussian-vcl": "BBB: Adam, reward noise {noise}, and weight noise that starts at "
    "{initial_noise}, as in the settings that Riquelme et al. published. They train BBB longer in "
    "its first trainings and draw each unit's input instead of the weights; here it is trained as "
    "the others, with one draw of the weights a batch.",
    "radial-vcl": "radial-vcl is not in the paper: BBB with the radial family",
    "vadam": "VADAM: N = rounds x batch size, as in BAdam. That and the noise of its start, "
    "{initial_noise} of a weight, were chosen after a look at the first 1,000 rounds of mushroom "
    "and statlog, seeds 0 and 1; nothing else was.",
    "badam": "BAdam: the equations of the authors' published optimiser for its variant with a "
    "Gaussian prior, N = rounds x batch size; their prior precision is not stated",
}
"""Deviations from the paper by method; in braces are keys of its recipe and options."""


def _differences(runs: Sequence[FinishedRun]) -> Section:
    first = {run.method: run for run in reversed(runs)}
    return Section(
        "What differs from the paper, and what it leaves open",
        [
            Text(
                points=[
                    "Optimiser, noise, priors and the first precision of the methods beside BAdam "
                    "are not stated.",
                    *(
                        text.format_map(_recipe(first[method]))
                        for method, text in _DEVIATIONS.items()
                        if method in first
                    ),
                    "Adult has 92 columns here and 94 there, where the test part's incomes are "
                    "spelled in another way. Statlog: the 43,500 training rows.",
                ]
            )
        ],
    )


def _recipe(run: FinishedRun) -> Mapping[str, Any]:
    """Keys of a run's recipe and its options, with defaults for keys that its spec lacks."""
    defaults = {
        key: field.get_default(call_default_factory=True)
        for key, field in Recipe.model_fields.items()
    }
    recipe = run.spec.recipe
    return {**defaults, **recipe, **recipe.get("options", {})}
