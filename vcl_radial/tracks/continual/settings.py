"""The validated keys of a task sequence and of a method's recipe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from vcl_radial.config import outside
from vcl_radial.config.ranges import Count, CountOrZero, Positive, ShareBelowOne
from vcl_radial.data.backbones import LAYERS, POOL, PRETRAINING, SIZE, check_choices
from vcl_radial.data.data_files import (
    BACKBONE_KEYS,
    IMAGE_KEYS,
    STREAM_KEYS,
    TEST_SHARE,
    UNCHECKED_DATASETS,
    folder_name,
    user_images,
)
from vcl_radial.data.streams.choices import (
    check_first_tasks,
    checked_order,
    classes_per_task,
    default_tasks,
)
from vcl_radial.errors import UserError
from vcl_radial.runs.keys import Key
from vcl_radial.runs.settings import Settings
from vcl_radial.system.memory import check_memory
from vcl_radial.system.quiet import quiet
from vcl_radial.tracks.recipe import MethodRecipe, MethodRun, one_of

IMAGE_FOLDER = "image-folder"

OTHER_DATASETS = (
    *("fashion-mnist", "mnist", "notmnist-small", "cifar10", "omniglot", "digits", "glyphs"),
)
"""Data sets with a known place."""

NETWORKS = ("mlp", "convnet", "convnet-16", "resnet")
"""Networks that come with the suite."""


def _none_if_mlp(network: str | None) -> str | None:
    """Write the default as None, so that both spellings count as the same method."""
    return None if network == "mlp" else network


class StreamSettings(Settings):
    """The task sequence.

    Attributes:
        first_tasks: number of tasks after which the stream ends; by default all.
        image_size: pixels along both edges of the images of an image folder; by default unchanged.
        class_order: a permutation of the classes, or "seed": a permutation drawn from the run's
            seed, the same for every method (`vcl_radial.data.streams.choices.checked_order`).
        statistics: the training images on which inputs have mean 0 and variance 1.
        test_share: share of each class's images for testing, if an image folder has no test part.
        test_seed: seed of the test part, separate from the seed of the validation part: searches
            that hold out different validation images must not see a different test part.
        features: an .npz file with the arrays `train` and `test`, whose rows replace the images, or
            a network of `vcl_radial.data.backbones.PRETRAINING` that computes them.
        feature_size: pixels along both edges of that network's inputs.
        feature_layers: layers of that network, see `vcl_radial.data.pretrained`.
        feature_pool: cells along both edges of a layer's map.
        uncertainty: whether prediction sets and uncertainties are scored after every task
            (`vcl_radial.tracks.continual.uncertainty`); by default no.
        ood: a data set with images of the same size, which uncertainties should tell from the
            tasks; it implies `uncertainty`.
        checksum: checksum of a user's data; a command fills it in.
        data_name: name of a user's data folder; a command fills it in.
    """

    kind: Annotated[str, one_of("split", "grouped", "permuted", what="function")] = "split"
    dataset: Annotated[str, one_of(*OTHER_DATASETS, "idx-folder", IMAGE_FOLDER, what="function")]
    tasks: Count = 5
    first_tasks: Count | None = None
    heads: Literal["multi", "single"] = "multi"
    class_order: list[int] | Literal["seed"] | None = None
    statistics: Literal["all-tasks", "first-task"] = "all-tasks"
    validation: ShareBelowOne = 0.1
    split_seed: CountOrZero = 0
    image_size: Count | None = None
    test_share: Annotated[float, Field(gt=0, lt=1)] = TEST_SHARE
    test_seed: CountOrZero = 0
    features: str | None = None
    feature_size: Count | None = None
    feature_layers: list[CountOrZero] | None = None
    feature_pool: Count | None = None
    uncertainty: bool | None = None
    ood: Annotated[str, one_of(*OTHER_DATASETS, what="function")] | None = None
    checksum: str | None = None
    data_name: str | None = None

    @field_validator(*IMAGE_KEYS)
    @classmethod
    def _for_image_folders_only(cls, value: Any, info: ValidationInfo) -> Any:
        changed = value != cls.model_fields[str(info.field_name)].default
        if changed and info.data.get("dataset", IMAGE_FOLDER) != IMAGE_FOLDER:
            raise ValueError(f"this key is for stream.dataset = {IMAGE_FOLDER!r} only")
        return value

    @model_validator(mode="before")
    @classmethod
    def _with_defaults_of_features(cls, table: Any) -> Any:
        # Written out, so that a run's digest does not depend on later defaults.
        if isinstance(table, dict) and table.get("features") in PRETRAINING:
            defaults = {"size": SIZE, "layers": [*LAYERS], "pool": POOL}
            return {f"feature_{key}": value for key, value in defaults.items()} | table
        return table

    @model_validator(mode="after")
    def _features_fit(self) -> StreamSettings:
        if self.backbone is None:
            for key in BACKBONE_KEYS:
                if getattr(self, key) is not None:
                    known = " or ".join(map(repr, PRETRAINING))
                    raise ValueError(f"{key} is for stream.features = {known} only")
            return self
        size, layers, pool = (getattr(self, key) for key in BACKBONE_KEYS)
        try:
            check_choices(size, layers, pool, prefix="feature_")
        except UserError as error:
            raise ValueError(str(error)) from None
        return self

    @field_validator("class_order", mode="before")
    @classmethod
    def _list_or_seed(cls, value: Any) -> Any:
        if value != "seed" and not isinstance(value, list | None):
            raise ValueError("give a list of the classes, or 'seed'")
        return value

    @property
    def varies_with_seed(self) -> bool:
        """Whether the tasks depend on the run's seed."""
        return self.class_order == "seed"

    @property
    def backbone(self) -> str | None:
        """The network whose features replace the images; None for images, or rows of a file."""
        return self.features if self.features in PRETRAINING else None

    @property
    def trained_tasks(self) -> int:
        """Number of trained tasks."""
        return self.first_tasks or self.tasks

    @property
    def multi_head(self) -> bool:
        """Whether every task has a separate head."""
        return self.heads == "multi"


def _with_name(part: Any) -> Any:
    """A name alone as a table with the name."""
    table = {"name": part} if isinstance(part, str) else part
    named = isinstance(table, dict) and isinstance(table.get("name"), str)
    if not named:
        raise ValueError("write a name, or a table with name and arguments")
    return table


Part = Annotated[dict[str, Any], BeforeValidator(_with_name)]
"""The name of a class or function, and its arguments."""


class AvalancheSettings(Settings):
    """Plugins, metrics and loggers of Avalanche (`vcl_radial.integrations.avalanche.parts`).

    Attributes:
        plugins: plugins of the training.
        metrics: metrics, computed after every task on the data of the scores.
        loggers: loggers of these metrics, which write into the run's folder.
        eval_every: epochs between computations of the metrics on the validation part of the task;
            None for never.
    """

    plugins: list[Part] = Field(default=[])
    metrics: list[Part] = Field(default=[])
    loggers: list[Part] = Field(default=[])
    eval_every: Count | None = None

    def check(self) -> None:
        """Check that plugins, metrics and loggers exist and take their arguments.

        Raises:
            UserError: one does not.
        """
        with quiet():  # Avalanche's imports warn
            from vcl_radial.integrations.avalanche.parts import check
        check("plugins", self.plugins)
        check("metrics", self.metrics)
        check("loggers", self.loggers)

    def from_outside(self) -> list[Callable[..., Any]]:
        """The user's plugins, metrics and loggers.

        Raises:
            UserError: one is not found or cannot be imported.
        """
        lists = {"plugins": self.plugins, "metrics": self.metrics, "loggers": self.loggers}
        named = [(key, part["name"]) for key, parts in lists.items() for part in parts]
        return [outside.find(f"avalanche.{key}", n) for key, n in named if outside.is_named(n)]


class Recipe(MethodRecipe):
    """How a method trains and predicts; the keys of `baselines/*.toml` and of `--set`."""

    network: Annotated[
        Annotated[str, one_of(*NETWORKS, what="function")] | None, AfterValidator(_none_if_mlp)
    ] = Key(
        None,
        "'mlp' (None) of the hidden layers, 'convnet' (`vcl_radial.nn.convnet`), 'convnet-16' with "
        "16 channels in every convolution, 'resnet' (`vcl_radial.nn.resnet`), or a function from "
        "outside",
    )
    hidden: Annotated[list[Count], Field(max_length=100)] = Key(
        [200, 200, 200, 200], "the units of each hidden layer of the MLP"
    )
    likelihood: Literal["categorical", "one-hot"] = Key(
        "categorical",
        "likelihood of the classes: a softmax, or Gaussian noise on their labels "
        "(`vcl_radial.likelihoods.OneHot`)",
    )
    label_variance: Positive = Key(0.1, "variance v of that noise")
    label_scale: Positive = Key(1.0, "output s that stands for a label")
    point_heads: bool = Key(False, "point estimates in the heads, whatever the body has")
    optimizer: Annotated[str, one_of("amsgrad", "adam", "sgd", what="function")] = Key(
        "amsgrad",
        "optimiser of the network by its name, or `package.module:function` from parameters and lr",
    )
    learning_rate: Positive = Key(1e-3, "step size of the optimiser", lanes="may differ")
    rho_learning_rate: Positive | None = Key(
        None, "step size for rho and the factor of a low rank, if different", lanes="may differ"
    )
    schedule: Literal["constant", "cosine", "one-cycle"] = Key(
        "constant",
        "the learning rate within a task (`vcl_radial.optimizers.schedules`)",
        lanes="may differ",
    )
    epochs: Count = Key(20, "epochs of each task", lanes="may differ")
    first_task_epochs: Count | None = Key(
        None, "epochs of the first task, if different", lanes="may differ"
    )
    batch_size: Count = Key(1024, "points of a batch")
    drop_last: bool = Key(True, "whether a smaller last batch is left out")
    train_samples: Count = Key(1, "weight samples in the loss")
    eval_samples: Count = Key(100, "weight samples in a prediction")
    precision: Literal["float32", "bfloat16"] = Key(
        "float32", "precision of the products of the body's forward and backward pass"
    )
    avalanche: AvalancheSettings | None = Key(
        None,
        "plugins, metrics and loggers of Avalanche, whose loop then trains the method",
        digest="unless default",
    )

    @model_validator(mode="after")
    def _labels_have_noise(self) -> Recipe:
        for key in ("label_variance", "label_scale"):
            changed = getattr(self, key) != type(self).model_fields[key].default
            if changed and self.likelihood != "one-hot":
                raise ValueError(f"{key} is for likelihood = 'one-hot' only: set that, or leave it")
        return self

    @model_validator(mode="after")
    def _avalanche_has_one_factor(self) -> Recipe:
        if self.avalanche is not None and self.kl_schedule != "constant":
            raise ValueError(
                f"kl_schedule = {self.kl_schedule!r} is not for Avalanche's loop: leave out "
                "[avalanche] or the key"
            )
        return self

    def epochs_of(self, task: int) -> int:
        """Epochs of a task (from 1)."""
        return self.first_task_epochs or self.epochs if task == 1 else self.epochs

    def epochs_until(self, task: int) -> int:
        """Total epochs of the first tasks, up to this one (from 1)."""
        return sum(map(self.epochs_of, range(1, task + 1)))

    def check_batches(self, smallest: int) -> None:
        """Check that every task has a batch.

        Args:
            smallest: training points of the smallest task.

        Raises:
            UserError: a task has no batch.
        """
        if self.drop_last and self.batch_size > smallest:
            raise UserError(
                f"batch_size = {self.batch_size} is more than the {smallest} training "
                "points of a task, and drop_last = true leaves no batch: choose a smaller one"
            )

    def check_layers(self, multi_head: bool) -> None:
        """Check that heads of several tasks have a layer to share.

        Raises:
            UserError: there is no such layer.
        """
        if self.network is None and not self.hidden and multi_head:
            raise UserError("hidden = []: heads of several tasks share a layer; give one at least")


class Run(MethodRun):
    """A run of a task sequence."""

    DATA: ClassVar[str] = "stream"
    FILES: ClassVar[tuple[str, ...]] = ("accuracy.csv", "metrics.json")

    stream: StreamSettings
    recipe: Recipe

    @model_validator(mode="after")
    def _held_out_for_avalanche(self) -> Run:
        avalanche = self.recipe.avalanche
        if avalanche is not None and avalanche.eval_every and not self.stream.validation:
            raise ValueError("avalanche.eval_every needs stream.validation above 0")
        return self

    def check(self) -> None:
        """Check the method, Avalanche's parts, and the functions that the stream names."""
        self._stream_functions()
        if self.recipe.avalanche is not None:
            self.recipe.avalanche.check()
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
            filled["tasks"] = self._tasks_of_folder(data_dir)
        user_data = settings.dataset in UNCHECKED_DATASETS or outside.is_named(settings.dataset)
        if user_data or (settings.features is not None and settings.backbone is None):
            if settings.image_size is not None:
                files, size = user_images(data_dir), settings.image_size
                check_memory(files.root, len(files), size, size)
            from vcl_radial.data.streams import checksum  # takes seconds to import

            # A network's features follow from the images, its weights and its settings.
            of_file = {*STREAM_KEYS} - ({"features"} if settings.backbone else set())
            keys = settings.model_dump(include=of_file, exclude_none=True)
            filled["checksum"] = checksum(settings.dataset, data_dir, **keys)
        return filled

    def _tasks_of_folder(self, data_dir: Path | None) -> int:
        """The number of tasks, checked before any image is read, which may take minutes.

        Raises:
            UserError: the folder's layout is wrong, or the tasks do not fit it.
        """
        classes, stream = len(user_images(data_dir).class_names), self.stream
        chosen = "tasks" in stream.model_fields_set
        tasks = stream.tasks if chosen else default_tasks(classes, stream.heads)
        try:
            if chosen:
                classes_per_task(classes, tasks, stream.multi_head)
                checked_order(stream.class_order, classes, self.seed)
            check_first_tasks(stream.first_tasks, tasks)
        except UserError as error:  # begins with the key
            raise UserError(f"stream.{error}", at=self.benchmark) from None
        return tasks

    def from_outside(self) -> list[Callable[..., Any]]:
        """The user's classes and functions that the recipe and the stream name.

        Raises:
            UserError: one is not found or cannot be imported.
        """
        avalanche = self.recipe.avalanche
        parts = super().from_outside() + self._stream_functions()
        return parts if avalanche is None else parts + avalanche.from_outside()

    def _stream_functions(self) -> list[Callable[..., Any]]:
        stream = self.stream
        functions = {"kind": stream.kind, "dataset": stream.dataset, "ood": stream.ood or ""}
        return [
            outside.find(key, name) for key, name in functions.items() if outside.is_named(name)
        ]
