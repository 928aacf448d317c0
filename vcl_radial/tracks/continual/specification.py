"""What a run is: a benchmark, a method's recipe and a seed, every key validated.

A recipe is flat: the method's TOML, overridden by the benchmark's `[recipe]` table where the data
ask for other sizes, overridden by `--set key=value`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from vcl_radial import outside
from vcl_radial.data.streams.choices import checked_order, classes_per_task, default_tasks
from vcl_radial.data_files import (
    FOLDER_DATASETS,
    check_data,
    folder_name,
    image_files,
    required_root,
)
from vcl_radial.errors import UserError
from vcl_radial.installed import offer
from vcl_radial.tracks.settings import IMAGE_FOLDER, Recipe, Settings, StreamSettings, digest_of

RESULT_FILES = ("spec.toml", "accuracy.csv", "metrics.json", "environment.json")
"""What the folder of a finished run holds at least."""


class Run(Settings):
    """One run: benchmark x method x seed, as it stands in `spec.toml`.

    Attributes:
        code: a checksum of the files of what the user has named as `package.module:name`; a command
            fills it in.
    """

    benchmark: str
    method: str
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    evaluate_on: Literal["test", "validation"] = "test"
    code: str | None = None
    stream: StreamSettings
    recipe: Recipe

    @model_validator(mode="after")
    def _validation_exists(self) -> Run:
        if self.evaluate_on == "validation" and self.stream.validation == 0:
            raise ValueError("evaluate_on = 'validation' needs stream.validation above 0")
        return self

    @property
    def result_files(self) -> tuple[str, ...]:
        """What the folder of the finished run holds at least."""
        return RESULT_FILES

    def settings(self) -> dict[str, Any]:
        """All keys that were set, as TOML would hold them."""
        return self.model_dump(exclude_none=True)

    def digest(self) -> str:
        """A hash of all that decides the numbers, but for the seed and the method's name."""
        content = self.model_dump(exclude={"seed", "method"}, mode="json")
        if self.stream.checksum is None:
            del content["stream"]["checksum"]
        content["stream"].pop("data_name", None)  # a folder may be renamed
        if self.code is None:
            del content["code"]
        return digest_of(content)[:8]

    def on_data(self, data_dir: Path | None) -> Run:
        """This run with checksums of its data and its classes, where these are the user's own.

        So a run is done anew where they have changed since. Data that are a folder of the user's
        get its name; an image folder that is split gets a number of tasks where none was chosen.

        Raises:
            UserError: the data cannot be read.
        """
        settings = self.stream
        filled: dict[str, Any] = {"data_name": folder_name(settings.dataset, data_dir)}
        if settings.dataset == IMAGE_FOLDER and settings.kind == "split":
            filled["tasks"] = self._tasks_of_folder(required_root(IMAGE_FOLDER, data_dir))
        if settings.dataset in FOLDER_DATASETS or outside.is_named(settings.dataset):
            check_data(settings.dataset, data_dir)
            from vcl_radial.data.streams import checksum  # which takes seconds to import

            filled["checksum"] = checksum(settings.dataset, data_dir, **settings.loading)
        stream = settings.model_copy(update=filled)
        code = None
        with suppress(UserError):  # the run itself will say so, and others go on
            code = outside.checksum(*found) if (found := self.from_outside()) else None
        return self.model_copy(update={"stream": stream, "code": code})

    def _tasks_of_folder(self, root: Path) -> int:
        """The number of tasks, checked before any image is read.

        Raises:
            UserError: the folder is not laid out as it has to be, or the tasks do not fit it.
        """
        classes, stream = len(image_files(root).class_names), self.stream
        if "tasks" not in stream.model_fields_set:
            return default_tasks(classes, stream.heads)
        try:
            classes_per_task(classes, stream.tasks, stream.heads == "multi")
            checked_order(stream.class_order, classes)
        except UserError as error:  # begins with the key
            raise UserError(f"{self.benchmark}: stream.{error}") from None
        return stream.tasks

    def from_outside(self) -> list[Callable[..., Any]]:
        """Strategy, posterior, network and stream, where they are not the suite's own.

        Raises:
            UserError: one is not found or cannot be imported.
        """
        found: list[Callable[..., Any]] = []
        # They take seconds to import: not for the suite's own.
        if outside.is_named(self.recipe.strategy) or offer(self.recipe.strategy):
            from vcl_radial.strategies.registry import find_strategy

            found.append(find_strategy(self.recipe.strategy))
        if outside.is_named(self.recipe.posterior):
            from vcl_radial.posteriors import family

            found.append(family(self.recipe.posterior))
        functions = {
            "network": self.recipe.network,
            "kind": self.stream.kind,
            "dataset": self.stream.dataset,
        }
        found += [
            outside.find(key, name) for key, name in functions.items() if outside.is_named(name)
        ]
        return found


def validated(
    benchmark: str,
    method: str,
    seed: int,
    stream: dict[str, Any],
    recipe: dict[str, Any],
    evaluate_on: str = "test",
    code: str | None = None,
) -> Run:
    """A run from plain tables.

    Raises:
        UserError: a key is unknown or a value impossible; it names the key and the nearest name.
    """
    try:
        return Run.model_validate(
            {
                "benchmark": benchmark,
                "method": method,
                "seed": seed,
                "evaluate_on": evaluate_on,
                "code": code,
                "stream": stream,
                "recipe": recipe,
            }
        )
    except ValidationError as error:
        raise UserError(f"{benchmark} x {method}: {_in_words(error)}") from None


def _in_words(error: ValidationError) -> str:
    """The first fault of a table in one line, with the mend."""
    fault = error.errors()[0]
    place = [part for part in fault["loc"] if isinstance(part, str)]
    # The keys of a recipe are what the user wrote; the table's own name would only puzzle.
    key = ".".join(part for part in place if part != "recipe") or "spec"
    # Of a list, such as hidden, the element.
    key += "".join(f"[{part}]" for part in fault["loc"] if isinstance(part, int))
    if fault["type"] == "extra_forbidden":
        tables: dict[str, type[Settings]] = {"recipe": Recipe, "stream": StreamSettings}
        known = tables.get(place[0], Run).model_fields
        nearest = get_close_matches(place[-1], known, 1, cutoff=0.0)[0]
        return f"unknown key {key!r}; the nearest known one is {nearest!r}"
    if fault["type"] == "missing":
        return f"the key {key!r} is missing"
    message = fault["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    return f"{key} = {fault['input']!r}: {message}" if place else message
