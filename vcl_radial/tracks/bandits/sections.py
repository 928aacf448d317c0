"""Sections of a report on a bandit: Table 1 of the BAdam paper beside ours, and regret."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator

from vcl_radial.errors import DataError
from vcl_radial.metrics import METRICS, mean_and_standard_error
from vcl_radial.metrics.declared import Better
from vcl_radial.metrics.verdicts import verdicts_of_family
from vcl_radial.reporting.blocks import (
    Claim,
    Figure,
    Section,
    Table,
    Text,
    claims_table,
    with_spread,
)
from vcl_radial.reporting.figures.drawing import Curve, to_csv
from vcl_radial.reporting.figures.lines import line_figure, mean_curves
from vcl_radial.reporting.mean_table import Value, Values, mean_table
from vcl_radial.reporting.scores import at_the_end, scores_table
from vcl_radial.reporting.sections import settings
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.bandits.published import CONCLUSIONS, DEVIATIONS, PUBLISHED

_REWARDS = (
    "Cumulative reward over that of the best actions, mean ± one standard deviation over games"
)

_TABLES = {
    "mushroom": "Mushroom: to leave it earns 0; to eat it 5, or if it is poisonous -35 or 5 with "
    "equal chances.",
    "statlog": "Statlog: 1 for the label, else 0; the 43,500 training rows.",
    "adult": "Adult: 1 for the label, else 0; 92 columns here and 94 in the paper, where the test "
    "part's incomes are spelled in another way.",
    "financial": "Financial: the actions are eight random portfolios of the seed, each with its "
    "own noise of the reward.",
    "jester": "Jester: the actions are eight jokes that the seed draws, the context the ratings of "
    "the other 32.",
    "covertype": "Covertype: 1 for the label, else 0.",
    "census": "Census: 1 for the label, else 0.",
}
_ORDER = (
    "Rows come in random order without repeats. The seed is that of the order, the rewards that "
    "are drawn, the start, the batches and the draws."
)
_OPEN = (
    "The paper does not state optimiser, noise, priors and first precision of the methods beside "
    "BAdam."
)
_UNTUNED = "All methods have the settings of mushroom, statlog and adult; none was chosen here."


def with_metrics(game: pd.DataFrame) -> pd.DataFrame:
    """The rounds of a game with a column for each metric of games."""
    functions = {name: m.function for name, m in METRICS.items() if m.of == "game" and m.function}
    return game.assign(**{name: function(game) for name, function in functions.items()})


def report(finished: Sequence[FinishedRun]) -> list[Section]:
    """The report on the games of one table.

    Raises:
        DataError: the games have different numbers of rounds.
    """
    name = str(finished[0].spec.data["table"])
    scores = scores_table(finished)
    games = games_table(scores)
    if games["rounds"].nunique() > 1:
        raise DataError("its games have different numbers of rounds")
    curves = mean_curves(scores[scores["metric"] == "regret"], "benchmark")
    picture = Figure("regret", partial(draw, curves), f"Regret over the rounds, {name}")
    files = {"games.csv": games.to_csv(index=False), "regret.csv": to_csv(curves)}
    in_paper = name in CONCLUSIONS
    beside = ", beside Table 1 of Kessler et al. 2020 (BAdam)." if in_paper else "."
    rewards = Text(f"{_REWARDS}{beside}")
    parts = [Section("Rewards", [make_table(games, name), rewards, picture], files)]
    if claims := make_claims(games, name):
        parts.append(Section("What the paper concludes", [claims_table(claims)]))
    points = [text for method, text in DEVIATIONS.items() if method in {*games["method"]}]
    about = Text(points=[_TABLES[name], _ORDER, _OPEN if in_paper else _UNTUNED, *points])
    return [
        *parts,
        Section(f"The game{', and what differs from the paper' * in_paper}", [about]),
        settings(finished),
    ]


def games_table(scores: pd.DataFrame) -> pd.DataFrame:
    """One row per game, with its scores after the last round.

    Args:
        scores: the table of scores.

    Returns:
        `method, seed, rounds, reward, optimum`, the ratio of the last two, `relative`, and other
        metrics of games.
    """
    keys = {"run": "run", "method": "method", "seed": "seed", "after": "rounds"}
    ends = at_the_end(scores).rename(columns=keys)
    games = ends.pivot(index=list(keys.values()), columns="metric", values="value")
    games["relative_reward"] /= 100
    games = games.rename(columns={"relative_reward": "relative"}).reset_index().drop(columns="run")
    first = ["method", "seed", "rounds", "reward", "optimum", "relative"]
    return games[[*first, *games.columns.difference(first)]]


def make_table(games: pd.DataFrame, name: str) -> Table:
    """Ours beside the paper's, mean ± one standard deviation over games."""
    by_method = games.groupby("method", sort=False)

    def column(score: str, heading: str, decimals: int, better: Better | None = None) -> Values:
        spread = by_method[score].agg(["mean", "std"])
        by_row = {str(method): Value(*row) for method, *row in spread.itertuples()}
        return Values(heading, by_row, lambda method: decimals, better=better)

    published = {method: value for (table, method), value in PUBLISHED.items() if table == name}
    columns = [
        *([Values("published", published, published=True)] if name in CONCLUSIONS else []),
        column("relative", "ours", 2, "higher"),
        Values("games", {str(m): Value(n) for m, n in by_method.size().items()}, lambda method: 0),
        *(
            column(score, metric.heading, metric.decimals, metric.better)
            for score, metric in METRICS.items()
            if metric.of == "game" and score in games
        ),
        column("optimum", "optimal reward", 0),
    ]
    rows = {str(method): [str(method)] for method, _ in by_method}
    return mean_table(["method"], rows, columns)


def draw(curves: Sequence[Curve]) -> Picture:
    """Draw regret over the rounds; a uniform agent's regret is beyond the upper end."""
    return line_figure(
        "Regret of Thompson sampling",
        ["cumulative, lower is better", "mean ± standard error over games"],
        curves,
        ("round", "regret, in rewards"),
        scale=_below_uniform,
    )


def _below_uniform(axes: Axes, curves: Sequence[Curve]) -> None:
    highest = [max(curve.y) for curve in curves if curve.name != "uniform"]
    top = max(highest or [max(curves[0].y)])
    axes.set_ylim(0, 1.25 * top if top > 0 else 1)
    axes.set_xlim(0, None)
    axes.xaxis.set_major_locator(MaxNLocator(4))


def make_claims(games: pd.DataFrame, name: str) -> list[Claim]:
    """Conclusions of the paper from its table, judged by pairs of our games of one seed."""
    rewards = games.pivot(index="seed", columns="method", values="relative")
    statements, differences = [], []
    for published, better, worse in CONCLUSIONS.get(name, ()):
        pairs = rewards.reindex(columns=[better, worse]).dropna()
        if pairs.empty:
            continue
        values = (pairs[better] - pairs[worse]).tolist()
        mean = with_spread(*mean_and_standard_error(values), 3, sign=True)
        ours = f"{better} less {worse}: {mean} over {len(values)} games"
        statements.append((published, ours))
        differences.append(values)
    verdicts = verdicts_of_family(differences)
    return [
        Claim(*statement, verdict, "see what differs, below")
        for statement, verdict in zip(statements, verdicts, strict=True)
    ]
