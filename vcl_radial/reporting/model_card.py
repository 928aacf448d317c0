"""The card of a kept model in Markdown: data, tasks, scores, calibration and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.errors import UserError, visible
from vcl_radial.metrics import METRICS
from vcl_radial.models.format import CARD, TENSORS, read_card, reading_card
from vcl_radial.reporting import markdown

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.runs.track import FinishedRun

_SCORES = ("accuracy", "balanced_accuracy", "auc", "nll", "ece", "rmse", "log_likelihood")
"""The scores of a card, in order, as far as the track has them."""


def card_text(folder: Path) -> str:
    """The card of the model in a run's folder, from the run's files alone.

    Raises:
        UserError: the folder has no model.
        DataError: the card is damaged.
    """
    card = read_card(folder)
    with reading_card(folder):
        return _text(folder, card)


def _text(folder: Path, card: Mapping[str, Any]) -> str:
    run = _finished(folder)
    scores = None if run is None else _scores(run)
    spec = card["spec"]
    parts = {
        "Model": [markdown.facts([*_facts(folder, card, run)]).rstrip()],
        "Data": _list(_data(card, run)),
        "Tasks and scores": _tasks(card, scores),
        "Calibration": [_calibration(scores)],
        "Training data in the files": [_training_data(card)],
        "Limits": _list(_limits(card)),
    }
    title = f"# {_escaped(spec['method'])} on {_escaped(spec['benchmark'])}, seed {spec['seed']}"
    sections = [
        title,
        "Predict with `vcl-radial predict FOLDER DATA --to FILE`, or in Python with "
        "`vcl_radial.load(FOLDER)`.",
        *("\n".join([f"## {heading}", "", *lines]) for heading, lines in parts.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _finished(folder: Path) -> FinishedRun | None:
    """The finished run of the folder; None if the model was moved without its run."""
    from vcl_radial.reporting.gather import read_runs

    try:
        (run,) = read_runs([folder])
    except UserError:
        return None
    return run


def _scores(run: FinishedRun) -> pd.DataFrame:
    """The scores after the last step, with rows of tasks or parts and columns of metrics."""
    from vcl_radial.reporting.scores import scores_table

    table = scores_table([run])
    table = table[table["after"] == table["after"].max()]
    if "referred" in table:
        table = table[table["referred"].fillna(0) == 0]
    table = table[table["metric"].isin(_SCORES)].drop_duplicates(["task", "part", "metric"])
    wide: pd.DataFrame = table.pivot(index=["task", "part"], columns="metric", values="value")
    return wide.reindex(columns=[name for name in _SCORES if name in wide]).reset_index()


def _facts(
    folder: Path, card: Mapping[str, Any], run: FinishedRun | None
) -> Iterator[tuple[str, list[str]]]:
    recipe = card["spec"]["recipe"]
    for key in ("strategy", "posterior", "likelihood", "network", "hidden", "eval_samples"):
        if recipe.get(key) is not None:
            yield key, [str(recipe[key])]
    if run is not None:
        yield "parameters", [f"{run.environment.get('parameters', 0):,}"]
        packages = run.environment["packages"]
        yield "trained with", [", ".join(f"{name} {packages[name]}" for name in packages)]
        yield "finished", [str(run.environment.get("finished"))]
    yield "commit", [str(card.get("commit"))]
    size = sum(
        (folder / name).stat().st_size for name in (CARD, TENSORS) if (folder / name).exists()
    )
    yield "files", [f"{CARD} and {TENSORS}, {size:,} bytes"]
    yield "checksum", [card["checksum"]]


def _data(card: Mapping[str, Any], run: FinishedRun | None) -> Iterator[str]:
    spec, about = card["spec"], card["input"]
    data = spec.get("stream") or spec.get("data") or {}
    yield "settings: " + ", ".join(f"{key} = {value}" for key, value in data.items())
    yield f"an input has the shape {about['shape']}"
    if names := [name for name, _ in card.get("columns", [])]:
        yield f"the inputs are the columns {', '.join(names)}; the target is {card['target']}"
    if about.get("scaling") is not None:
        m, s = about["scaling"]
        x = "x / 255" if isinstance(m, list) else "x"  # the channels of photographs
        yield f"inputs are scaled by ({x} - m) / s with m = {m} and s = {s}, from training data"
    if run is not None:
        yield from map(str, run.environment.get("notices", []))


def _tasks(card: Mapping[str, Any], scores: pd.DataFrame | None) -> list[str]:
    """A table of the tasks with their classes and scores; then one of other scored parts."""
    names = [] if scores is None else [name for name in _SCORES if name in scores]
    headings, heads = [METRICS[name].heading for name in names], card.get("heads")
    if heads is None:  # a table, whose scores are not by task
        lines = _list(iter(task["name"] for task in card["tasks"]))
    else:
        rows = []
        for number, task in enumerate(card["tasks"], start=1):
            classes = heads[task["head"]]
            known = [classes[output] for output in task.get("outputs", range(len(classes)))]
            rows.append([task["name"], ", ".join(known), *_values(scores, names, number)])
        lines = _table(("task", "classes", *headings), rows)
    if scores is None:
        return [*lines, "", "The scores of the run do not lie beside the model."]
    others = scores[scores["task"] == 0]
    if len(others):
        parts = [[str(row["part"]), *_row(row, names)] for _, row in others.iterrows()]
        lines += ["", *_table(("part", *headings), parts)]
    with_task = ", with the task of every input known" if len(heads or ()) > 1 else ""
    return [*lines, "", f"Scores are those after the last task{with_task}."]


def _values(scores: pd.DataFrame | None, names: Sequence[str], task: int) -> list[str]:
    """The scores of a task; empty cells where it has none."""
    if scores is None:
        return []
    rows = scores[scores["task"] == task]
    return _row(rows.iloc[0], names) if len(rows) else [""] * len(names)


def _row(row: Any, names: Sequence[str]) -> list[str]:
    return [f"{row[name]:.{METRICS[name].decimals}f}" for name in names]


def _calibration(scores: pd.DataFrame | None) -> str:
    if scores is None or "ece" not in scores:
        return "The calibration was not measured."
    return (
        f"The calibration error (ECE), the mean distance of confidence and accuracy, is "
        f"{scores['ece'].mean():.2f} % on average over the rows above, and at most "
        f"{scores['ece'].max():.2f} %."
    )


def _training_data(card: Mapping[str, Any]) -> str:
    points = card["training_points"]
    if not points:
        return "The files hold no training points."
    return (
        f"The files hold {points:,} training points (the buffer or coreset of the method). "
        "Whoever gets the files gets these points."
    )


def _limits(card: Mapping[str, Any]) -> Iterator[str]:
    if "heads" in card:
        yield (
            "It knows the classes above alone: an input of any other kind gets one of them too. "
            "Look at the entropy and the mutual information of a prediction."
        )
    else:
        yield (
            "Rows unlike those of the training get a prediction too: look at its spread. The seed "
            "chose the training rows, so that rows of other seeds' test parts are among them."
        )
    if len(card.get("heads", ())) > 1:
        yield (
            "Without a task, a prediction takes the head that is least uncertain, which may be "
            "that of another task."
        )
    if card["spec"]["recipe"].get("posterior") == "none":
        yield "The weights are point estimates, unless the method itself draws them."
    if card["input"].get("permuted"):
        yield "Inputs must have the pixels in the order of their task."
    yield "It is one seed; other seeds of the method differ from it."
    part = card["spec"].get("evaluate_on", "test")
    yield f"The scores are on the {part} data of the benchmark; other data may differ from these."


def _table(headings: Sequence[str], rows: Any) -> list[str]:
    lines = [headings, ["---"] * len(headings), *([_escaped(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _list(lines: Iterator[str]) -> list[str]:
    return [f"- {_escaped(line)}" for line in lines]


def _escaped(text: str) -> str:
    return markdown.escaped(visible(text), "|")
