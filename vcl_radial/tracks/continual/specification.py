"""The specification of a run: a benchmark, a method's recipe and a seed, every key validated.

A recipe is flat: the method's TOML, overridden by the benchmark's `[recipe]` table where the data
need other sizes, overridden by `--set key=value`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from vcl_radial.config import outside
from vcl_radial.data.data_files import FOLDER_DATASETS, folder_name, user_images
from vcl_radial.data.streams.choices import default_tasks
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
        """Check the method and the functions that the stream names."""
        self._stream_functions()
        self.recipe.check_method(self.recipe.likelihood)

    def data_facts(self, data_dir: Path | None) -> dict[str, Any]:
        """The name and the checksum of data in a user's folder, and the tasks of an image folder.

        A split image folder gets a number of tasks if none was chosen.

        Raises:
            UserError: the data cannot be read.
        """
        settings = self.stream
        filled: dict[str, Any] = {"data_name": folder_name(settings.dataset, data_dir)}
        if settings.dataset == IMAGE_FOLDER and settings.kind == "split":
            classes = len(user_images(data_dir).class_names)
            if "tasks" not in settings.model_fields_set:
                filled["tasks"] = default_tasks(classes, settings.heads)
        user_data = settings.dataset in FOLDER_DATASETS or outside.is_named(settings.dataset)
        if user_data or settings.features is not None:
            if settings.image_size is not None:
                files, size = user_images(data_dir), settings.image_size
                check_memory(files.root, len(files), size, size)
            from vcl_radial.data.streams import checksum  # takes seconds to import

            filled["checksum"] = checksum(settings.dataset, data_dir, **settings.loading)
        return filled

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
