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
from vcl_radial.data.streams.known import rows_of, task_sizes
from vcl_radial.errors import UserError
from vcl_radial.system.memory import check_memory
from vcl_radial.tracks.continual.settings import IMAGE_FOLDER, Recipe, StreamSettings
from vcl_radial.tracks.recipe import MethodRun


class Run(MethodRun):
    """A run of a task sequence."""

    DATA: ClassVar[str] = "stream"
    FILES: ClassVar[tuple[str, ...]] = ("accuracy.csv", "metrics.json")

    stream: StreamSettings
    recipe: Recipe

    def check(self) -> None:
        """Check the stream, the method, and that they fit each other.

        Raises:
            UserError: a part does not exist, or a setting does not fit the others or the data.
        """
        stream, recipe = self.stream, self.recipe
        self._stream_functions()
        sizes = task_sizes(stream.model_dump(exclude_none=True, exclude={"data_name"}), self.seed)
        if sizes is not None:
            recipe.check_batches(min(sizes))
        if not outside.is_named(stream.kind):
            recipe.check_layers(stream.multi_head)
        recipe.check_method(recipe.likelihood)

    def data_facts(self, data_dir: Path | None) -> dict[str, Any]:
        """The name and the checksum of data in a user's folder, and the tasks of an image folder.

        A split image folder gets a number of tasks if none was chosen.

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
        return filled

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
        """The user's method, posterior, network and stream.

        Raises:
            UserError: one is not found or cannot be imported.
        """
        return super().from_outside() + self._stream_functions()

    def _stream_functions(self) -> list[Callable[..., Any]]:
        functions = {"kind": self.stream.kind, "dataset": self.stream.dataset}
        return [
            outside.find(key, name) for key, name in functions.items() if outside.is_named(name)
        ]
