"""The specification of a run: a benchmark, a method's recipe and a seed, every key validated.

A recipe is flat: the method's TOML, overridden by the benchmark's `[recipe]` table where the data
need other sizes, overridden by `--set key=value`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from vcl_radial.config import outside
from vcl_radial.data.data_files import (
    FOLDER_DATASETS,
    check_data,
    folder_name,
    user_images,
)
from vcl_radial.data.named_files import check_feature_file
from vcl_radial.data.streams.choices import (
    check_first_tasks,
    checked_order,
    classes_per_task,
    default_tasks,
)
from vcl_radial.data.streams.known import rows_of
from vcl_radial.errors import UserError
from vcl_radial.runs.spec import RunSpec
from vcl_radial.system.memory import check_memory
from vcl_radial.tracks.continual.settings import IMAGE_FOLDER, Recipe, StreamSettings
from vcl_radial.tracks.recipe import parts_from_outside


class Run(RunSpec):
    """A run of a task sequence."""

    DATA: ClassVar[str] = "stream"
    FILES: ClassVar[tuple[str, ...]] = ("accuracy.csv", "metrics.json")

    stream: StreamSettings
    recipe: Recipe

    def on_data(self, data_dir: Path | None) -> Run:
        """This run with checksums of the user's data and classes.

        A run is repeated when these files have changed. Data in a user's folder get the folder's
        name; a split image folder gets a number of tasks if none was chosen.

        Raises:
            UserError: the data cannot be read.
        """
        settings = self.stream
        filled: dict[str, Any] = {"data_name": folder_name(settings.dataset, data_dir)}
        if settings.dataset == IMAGE_FOLDER and settings.kind == "split":
            filled["tasks"] = self._tasks_of_folder(data_dir)
        if settings.features is not None:
            check_feature_file(Path(settings.features), rows_of(settings.dataset))
        user_data = settings.dataset in FOLDER_DATASETS or outside.is_named(settings.dataset)
        if user_data or settings.features is not None:
            check_data(settings.dataset, data_dir)
            if settings.image_size is not None:
                files, size = user_images(data_dir), settings.image_size
                check_memory(files.root, len(files), size, size)
            from vcl_radial.data.streams import checksum  # takes seconds to import

            filled["checksum"] = checksum(settings.dataset, data_dir, **settings.loading)
        stream = settings.model_copy(update=filled)
        return self.model_copy(update={"stream": stream, "code": self.checksum_of_code()})

    def _tasks_of_folder(self, data_dir: Path | None) -> int:
        """The number of tasks, checked before any image is read.

        Raises:
            UserError: the folder's layout is wrong, or the tasks do not fit it.
        """
        classes, stream = len(user_images(data_dir).class_names), self.stream
        chosen = "tasks" in stream.model_fields_set
        tasks = stream.tasks if chosen else default_tasks(classes, stream.heads)
        try:
            if chosen:
                classes_per_task(classes, tasks, stream.heads == "multi")
                checked_order(stream.class_order, classes, self.seed)
            check_first_tasks(stream.first_tasks, tasks)
        except UserError as error:  # begins with the key
            raise UserError(f"{self.benchmark}: stream.{error}") from None
        return tasks

    def from_outside(self) -> list[Callable[..., Any]]:
        """The strategy, posterior, network and stream that do not come with the suite.

        Raises:
            UserError: one is not found or cannot be imported.
        """
        functions = {"kind": self.stream.kind, "dataset": self.stream.dataset}
        return parts_from_outside(self.recipe) + [
            outside.find(key, name) for key, name in functions.items() if outside.is_named(name)
        ]
