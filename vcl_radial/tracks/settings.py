"""The validated keys of a task sequence and of a method's recipe."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class Settings(BaseModel):
    """A table with known keys and strict types only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class StreamSettings(Settings):
    """The task sequence.

    Attributes:
        checksum: of the user's own data (`idx-folder`); a command fills it in.
    """

    kind: Literal["split", "permuted"] = "split"
    dataset: Literal["fashion-mnist", "mnist", "digits", "idx-folder"]
    tasks: Count = 5
    heads: Literal["multi", "single"] = "multi"
    class_order: list[int] | None = None
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.1
    split_seed: Annotated[int, Field(ge=0)] = 0
    checksum: str | None = None


_POSTERIORS = ("gaussian", "radial", "radial-eq44", "rdp", "none")


def _known_or_own(posterior: str) -> str:
    if posterior not in _POSTERIORS and ":" not in posterior:
        raise ValueError(
            f"choose from {', '.join(_POSTERIORS)}, or name your own as 'package.module:Class'"
        )
    return posterior


class Recipe(Settings):
    """How a method trains and predicts; the keys of `baselines/*.toml` and of `--set`."""

    strategy: str = "vcl"
    posterior: Annotated[str, AfterValidator(_known_or_own)] = "radial"
    grouping: Literal["layer", "tensor", "unit", "row", "column", "double"] = "layer"
    initial_rho: Annotated[float, Field(ge=-40, le=100)] = -6.0
    initial_noise: Positive | None = None
    prior_scale: Positive = 1.0
    kl_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
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
