"""Keep the model of a finished run in its folder, and load it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.models import format as files
from vcl_radial.runs.environment import loaded
from vcl_radial.runs.folder import RunFolder, write_atomically

if TYPE_CHECKING:
    from vcl_radial.runs.track import AnyTrack
    from vcl_radial.runs.training import Training


def keep(track: AnyTrack, folder: RunFolder[Any], training: Training, *, points: bool) -> None:
    """Write the model of a run that ends, if its track keeps one.

    Args:
        track: the track of the run.
        folder: the folder of the run.
        training: the finished training.
        points: whether the model holds the training points that the method stores. Without them
            it predicts as with them, but learns no further task.

    Raises:
        UserError: a file cannot be written.
    """
    model = track.kept_model(training)
    if model is None:
        return
    card, state = model
    if not points and files.training_points(state):
        card, state = card | {"training_points": 0, "left_out": True}, files.without_points(state)
    about = {"track": track.name, "spec": folder.run.settings(), "commit": loaded()}
    try:
        contents = files.encode(state, about | card)
    except TypeError as error:  # the state of a user's method may hold anything
        print(f"{folder.path}: no model is kept, as its state is no plain data ({error})")
        return
    for name, content in contents.items():
        write_atomically(folder.path / name, content)


def load(folder: str | Path, *, trust: bool = False) -> Any:
    """Load the model that a finished run keeps in its folder.

    Args:
        folder: the folder of a run, which may have been moved; or that of a method, whose seeds
            then predict as one (`vcl_radial.models.ensemble`).
        trust: whether a user's classes and functions that the model names may be imported.

    Returns:
        A `vcl_radial.models.model.Model`, or of a table a `vcl_radial.models.table.TableModel`.

    Raises:
        UserError: the folder has no model, or its seeds do not predict as one.
        DataError: a file is damaged, foreign or of a newer version, or names code from outside.
    """
    path = Path(folder)
    paths = folders(path)
    if len(paths) == 1:
        return load_one(paths[0], trust=trust)
    from vcl_radial.models.ensemble import Ensemble
    from vcl_radial.models.table import TableModel

    models = [load_one(path, trust=trust) for path in paths]
    if any(isinstance(model, TableModel) for model in models):
        raise UserError(
            "holds splits of a table, which learned from the test rows of each other; name the "
            f"folder of one, such as {paths[0].name}",
            at=path,
        )
    specs = [_without_seed(model.card["spec"]) for model in models]
    if any(spec != specs[0] for spec in specs):
        raise UserError(
            "holds runs of several settings; move each into a folder of its own", at=path
        )
    try:
        return Ensemble(models)
    except UserError as error:
        raise UserError(str(error), at=path) from None


def folders(path: Path) -> list[Path]:
    """The folders of the seeds in the folder of a method, or the folder of a run itself."""
    seeds = [] if (path / files.CARD).exists() else sorted(path.glob(f"seed-*/{files.CARD}"))
    return [card.parent for card in seeds] or [path]


def _without_seed(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec in which the runs of a method's seeds agree; each has parents of its own."""
    updates = [[link["task"], link["checksum"]] for link in spec.get("updates", [])]
    return {**spec, "seed": None, "updates": updates}


def load_one(path: Path, *, trust: bool = False) -> Any:
    """Load the model of a run; see `load`."""
    from vcl_radial.runs import tracks

    card, state = files.decode(path)
    with (
        files.reading_card(path),
        outside.consent(trust),
        outside.named_by(path / files.CARD),
    ):
        track = tracks.from_tables(card["spec"])
        return track.restored_model(track.validated(card["spec"]), card, state)
