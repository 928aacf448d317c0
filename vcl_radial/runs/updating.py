"""A kept model learns one more task, with the kept posterior as its prior, in a new run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.config import outside
from vcl_radial.config.command_lines import command_line, set_arguments
from vcl_radial.data.data_files import checked_folder, expanded
from vcl_radial.errors import UserError, bad_value
from vcl_radial.models import format as files
from vcl_radial.runs import kept, tracks
from vcl_radial.runs.catalogue import is_unicode
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.devices import device_of
from vcl_radial.runs.folder import RunFolder, finished_fault, unfinished
from vcl_radial.runs.planning import merged
from vcl_radial.runs.settings import UNNAMED_TABLE
from vcl_radial.runs.spec import RunSpec, Update
from vcl_radial.system.seeds import isolated_rng

if TYPE_CHECKING:
    from vcl_radial.runs.command import Performed
    from vcl_radial.runs.track import AnyTrack

TRAINING_KEYS = (
    *("epochs", "steps", "learning_rate", "rho_learning_rate", "schedule", "kl_weight"),
    *("kl_schedule", "batch_size", "drop_last", "optimizer", "train_samples"),
)
"""Keys of a recipe that an update may change; the others make the network and the method."""


def update(
    folder: str | Path,
    data: str | Path,
    *,
    name: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path = "runs",
    device: str = "auto",
    data_dir: str | Path | None = None,
    trust: bool = False,
) -> Any:
    """Let the model of a finished run learn one more task, as `vcl-radial update` does.

    The kept posterior is the prior of the task. The result is a new run in `out`, which names its
    parent by checksum; the parent's folder does not change. The same call resumes after an
    interruption, and repeats no finished update.

    Args:
        folder: the folder of the run; or that of a method, whose seeds are then updated each.
        data: the task: an .npz file with `x` and `y`, and perhaps `x_test` and `y_test`, a folder
            of images with a folder for each class; for the model of a table also a CSV file; for
            one of photographs a folder with `labels.csv` and `images/`.
        name: name of the task; by default that of the data without its ending.
        settings: keys that change the training, such as `{"epochs": 5}`; see `TRAINING_KEYS`.
        out: the folder of the runs.
        device: "auto", "cpu" or "cuda".
        data_dir: the folder of the benchmark's data, on which earlier tasks are scored again.
        trust: whether a user's classes and functions that the model names may be imported.

    Returns:
        The new model. With several seeds it is their ensemble, or of a table a list.

    Raises:
        UserError: the folder has no model, a key or a value is wrong, the method learns all tasks
            at once, or the run fails.
        DataError: the data do not fit the model.
    """
    with isolated_rng():
        done = perform_update(
            Path(folder),
            expanded(Path(data)),
            name=name,
            settings=settings or {},
            out=Path(out),
            device=device,
            data_dir=checked_folder(data_dir),
            trust=trust,
        )
    for end in done.failures:
        raise UserError(end.fault or "", end.run.label)
    from vcl_radial.models.table import TableModel

    paths = [RunFolder(done.context.out, run).path for run in done.runs]
    models = [kept.load_one(path, trust=trust) for path in paths]
    if len(paths) == 1:
        return models[0]
    several = isinstance(models[0], TableModel)
    return models if several else kept.load(paths[0].parent, trust=trust)


def perform_update(
    folder: Path,
    data: Path,
    *,
    name: str | None,
    settings: Mapping[str, Any],
    out: Path,
    device: str = "auto",
    data_dir: Path | None = None,
    trust: bool = False,
) -> Performed:
    """Plan the runs of an update, check them, and carry out those that are not finished.

    The arguments have the same meaning as in `update`.

    Raises:
        UserError, DataError: see `update`.
    """
    from vcl_radial.runs.command import Performed
    from vcl_radial.runs.runner import perform

    runs = []
    for path in kept.folders(folder):
        model = kept.load_one(path, trust=trust)
        track = tracks.from_tables(model.card["spec"])
        with outside.consent(trust), outside.named_by(path / files.CARD):
            runs.append(planned(track, model, path, data, name, settings))
    options: dict[str, Any] = {"name": name, "set": set_arguments(settings)}
    command = command_line("update", str(folder), str(data), **options)
    context = RunContext(out, data_dir, device_of(device, track), command=command)
    with outside.consent(trust), outside.named_by(folder):  # such as the optimiser of the card
        ends = perform(runs, context, 1, 1)
    return Performed(runs, context, ends)


def planned(
    track: AnyTrack,
    model: Any,
    folder: Path,
    data: Path,
    name: str | None,
    settings: Mapping[str, Any],
) -> RunSpec:
    """The run of an update.

    Raises:
        UserError, DataError: see `update`.
    """
    from vcl_radial.methods.registry import find_method

    tables = model.card["spec"]
    parent = track.validated(tables)
    fault = finished_fault(folder, parent.result_files)
    if fault is not None:
        raise UserError(unfinished(folder, fault))
    if find_method(parent.recipe.strategy).needs_whole_stream:
        raise UserError(
            f"{parent.method} learns all tasks at once, so that it learns no more: run it again on "
            "all of them",
            at=folder,
        )
    known = set(TRAINING_KEYS) & set(type(getattr(parent, UNNAMED_TABLE)).model_fields)
    if model.card.get("left_out"):
        raise UserError(
            "holds a model without the training points that its method replays, so that it learns "
            "no more: run it again without --no-buffer",
            at=folder,
        )
    for key in settings:
        if key not in known:
            raise UserError(
                "is no key of an update, which keeps the network and the method: choose from "
                f"{', '.join(sorted(known))}",
                at=key,
            )
    task = _task_name(data.name.split(".")[0] if name is None else name, model)
    link = Update(
        parent=model.card["checksum"],
        task=task,
        checksum=track.new_task(model, data),
        folder=str(folder),
        data=str(data),
    )
    links = [*tables.get("updates", []), link.model_dump()]
    recipe = merged(tables[UNNAMED_TABLE], settings)
    run: RunSpec = track.validated(
        {
            **tables,
            "benchmark": f"{parent.benchmark}+{task}",
            UNNAMED_TABLE: recipe,
            "updates": links,
        }
    )
    return run


def _task_name(name: str, model: Any) -> str:
    """The name of a new task, which is part of its folder's name.

    Raises:
        UserError: it cannot be the name of a folder, or an earlier task has it.
    """
    if name != Path(name).name or not name.strip(". ") or not is_unicode(name + "x"):
        raise bad_value("name", name, "cannot be part of a folder's name: give another --name")
    if name.isdecimal():
        raise bad_value("name", name, "is a number, which means a task's place: add --name NAME")
    if name in model.tasks:
        raise bad_value("name", name, "is the name of an earlier task: give another --name")
    return name


def parent_of(run: RunSpec) -> tuple[dict[str, Any], dict[str, Any]]:
    """The card and the state of the model that a run continues.

    Raises:
        UserError: the folder has no model, or another one.
        DataError: a file is damaged.
    """
    assert run.updates
    link = run.updates[-1]
    card, state = files.decode(Path(link.folder))
    if card["checksum"] != link.parent:
        raise UserError(
            f"holds another model (checksum {card['checksum'][:12]}) than the one that the run "
            f"continues ({link.parent[:12]}): give the command again",
            at=link.folder,
        )
    return card, state


def model_lines(folder: Path) -> list[str]:
    """Lines on the models below a folder: checksum, tasks, and the parent of each updated task.

    Raises:
        UserError: there is no model.
        DataError: a card is damaged.
    """
    paths = sorted(file.parent for file in folder.rglob(files.CARD))
    if not paths:
        raise UserError("holds no model; runs keep one without --no-model", at=folder)
    lines: list[str] = []
    for path in paths:
        card = files.read_card(path)
        with files.reading_card(path):
            lines += _lines_of(path, card)
    return lines


def _lines_of(path: Path, card: Mapping[str, Any]) -> list[str]:
    """What `model_lines` says of one model."""
    spec = card["spec"]
    links = [Update(**link) for link in spec.get("updates", [])]
    names = [task["name"] for task in card["tasks"]]
    return [
        f"{path}:",
        f"  {spec['method']} on {spec['benchmark']}, seed {spec['seed']}, model "
        f"{card['checksum'][:12]}",
        f"  tasks: {'; '.join(names[: len(names) - len(links)])}",
        *(
            f"  updated with {link.task}: from the model {link.parent[:12]} in {link.folder}, data "
            f"{link.data}"
            for link in links
        ),
    ]
