"""The validated keys of a task sequence and of a method's recipe."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
)

from vcl_radial import outside
from vcl_radial.data_files import IMAGE_KEYS, TEST_SHARE
from vcl_radial.errors import UserError

IMAGE_FOLDER = "image-folder"

NETWORKS = ("mlp", "convnet")
"""Networks that come with the suite."""

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class Settings(BaseModel):
    """A table with known keys and strict types only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def digest_of(content: Mapping[str, Any]) -> str:
    """A SHA-256 of settings, as hexadecimal digits. In which order the keys stand says nothing."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _known_or_own(value: str, known: Sequence[str], what: str) -> str:
    if value not in known and not outside.is_named(value):
        others = f"choose from {', '.join(known)}, or " if known else ""
        raise ValueError(f"{others}name your own as 'package.module:{what}'")
    return value


def _one_of(*known: str, what: str) -> AfterValidator:
    return AfterValidator(partial(_known_or_own, known=known, what=what))


def _none_if_mlp(network: str | None) -> str | None:
    """The default has one spelling, so that results of both are known as the same."""
    return None if network == "mlp" else network


class RecipeSettings(Settings):
    """What recipes say of a network's weights, in every track that trains networks of any kind.

    Attributes:
        posterior: of all weights; "none" for point estimates.
        grouping: which weights share a radius.
        initial_rho: the scale starts at sigma = softplus(initial_rho).
        initial_noise: where given, it takes the place of `initial_rho`: see `PosteriorSettings`.
        prior_scale: the first prior is N(0, prior_scale^2 I).
        kl_weight: of the KL; 1 is the evidence lower bound.
        network: `package.module:function` of the shape of an input, which gives a network of
            features; by default the track's own.
    """

    posterior: str = "radial"
    grouping: Literal["layer", "tensor", "unit", "row", "column", "double"] = "layer"
    initial_rho: Annotated[float, Field(ge=-40, le=100)] = -6.0
    initial_noise: Positive | None = None
    prior_scale: Positive = 1.0
    kl_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    network: Annotated[str, _one_of(what="function")] | None = None

    @model_serializer(mode="wrap")
    def _without_network(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Results from before there was this key are those of the track's own network still.
        content: dict[str, Any] = serialise(self)
        return {key: v for key, v in content.items() if key != "network" or v is not None}


class StreamSettings(Settings):
    """The task sequence.

    Attributes:
        image_size: pixels along both edges of the images of an image folder; by default as they
            are.
        test_share: of each class's images, where an image folder has no test part.
        test_seed: of that choice, which is not that of the validation part: searches that hold out
            other validation images must not see another test part.
        checksum: of data that are the user's own; a command fills it in.
        data_name: of data that are a folder of the user's, its name; a command fills it in.
    """

    kind: Annotated[str, _one_of("split", "permuted", what="function")] = "split"
    dataset: Annotated[
        str,
        _one_of("fashion-mnist", "mnist", "digits", "idx-folder", "image-folder", what="function"),
    ]
    tasks: Count = 5
    heads: Literal["multi", "single"] = "multi"
    class_order: list[int] | None = None
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.1
    split_seed: Annotated[int, Field(ge=0)] = 0
    image_size: Count | None = None
    test_share: Annotated[float, Field(gt=0, lt=1)] = TEST_SHARE
    test_seed: Annotated[int, Field(ge=0)] = 0
    checksum: str | None = None
    data_name: str | None = None

    @field_validator(*IMAGE_KEYS)
    @classmethod
    def _of_an_image_folder(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("dataset", IMAGE_FOLDER) != IMAGE_FOLDER:
            raise ValueError(f"this key is for stream.dataset = {IMAGE_FOLDER!r} only")
        return value

    @model_serializer(mode="wrap")
    def _without_keys_of_others(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Results from before there were these keys are those of other data sets still.
        content: dict[str, Any] = serialise(self)
        left_out = set() if self.dataset == IMAGE_FOLDER else set(IMAGE_KEYS)
        if self.data_name is None:
            left_out.add("data_name")
        return {key: v for key, v in content.items() if key not in left_out}

    @property
    def loading(self) -> dict[str, Any]:
        """The keys of `vcl_radial.data.streams.load_dataset`, besides the data set's name."""
        return {key: getattr(self, key) for key in IMAGE_KEYS if self.dataset == IMAGE_FOLDER}

    @property
    def multi_head(self) -> bool:
        """Whether each task has a head of its own."""
        return self.heads == "multi"


class Recipe(RecipeSettings):
    """How a method trains and predicts; the keys of `baselines/*.toml` and of `--set`.

    Attributes:
        network: "mlp" (None) of the `hidden` layers, "convnet" (`vcl_radial.nn.convnet`), or one
            from outside.
    """

    strategy: str = "vcl"
    posterior: Annotated[
        str, _one_of("gaussian", "radial", "radial-eq44", "rdp", "none", what="Class")
    ] = "radial"
    network: Annotated[
        Annotated[str, _one_of(*NETWORKS, what="function")] | None, AfterValidator(_none_if_mlp)
    ] = None
    hidden: Annotated[list[Count], Field(max_length=100)] = [200, 200, 200, 200]
    point_heads: bool = False
    optimizer: Literal["amsgrad", "adam", "sgd"] = "amsgrad"
    learning_rate: Positive = 1e-3
    rho_learning_rate: Positive | None = None
    schedule: Literal["constant", "cosine"] = "constant"
    epochs: Count = 20
    first_task_epochs: Count | None = None
    batch_size: Count = 1024
    drop_last: bool = True
    train_samples: Count = 1
    eval_samples: Count = 100
    precision: Literal["float32", "bfloat16"] = "float32"
    options: dict[str, Any] = {}

    def epochs_of(self, task: int) -> int:
        """Epochs of a task (from 1)."""
        return self.first_task_epochs or self.epochs if task == 1 else self.epochs

    def epochs_until(self, task: int) -> int:
        """Epochs of the first so many tasks together."""
        return sum(map(self.epochs_of, range(1, task + 1)))

    def check_batches(self, smallest: int) -> None:
        """See that every task has a batch.

        Args:
            smallest: training points of the smallest task.

        Raises:
            UserError: one has not.
        """
        if self.drop_last and self.batch_size > smallest:
            raise UserError(
                f"batch_size = {self.batch_size} is more than the {smallest} training "
                "points of a task, and drop_last = true leaves no batch: choose a smaller one"
            )

    def check_layers(self, multi_head: bool) -> None:
        """See that heads of several tasks have something to share.

        Raises:
            UserError: they have not.
        """
        if self.network is None and not self.hidden and multi_head:
            raise UserError("hidden = []: heads of several tasks share a layer; give one at least")
