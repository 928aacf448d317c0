"""The validated keys of a referral benchmark's data and of a method's recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator

from vcl_radial.config.ranges import Count, CountOrZero, Positive, Share, ShareBelowOne
from vcl_radial.data.backbones import LITE0
from vcl_radial.data.fundus import FUNDUS_DATASETS
from vcl_radial.data.fundus.layouts import OTHER
from vcl_radial.runs.keys import Key
from vcl_radial.runs.settings import Settings
from vcl_radial.tracks.recipe import MethodRecipe, MethodRun, one_of

NETWORKS = ("resnet", "vgg", "convnet", LITE0)
"""Networks that come with the suite."""


class DataSettings(Settings):
    """Keys of the photographs.

    Attributes:
        dataset: a name of `vcl_radial.data.fundus.FUNDUS_DATASETS`.
        size: pixels along an edge.
        crop: whether the field of view is cut out.
        normalise: "local" removes light and colours of the camera, "none" keeps them.
        split: a "random" split between patients, or the "published" split of the data.
        train: share of the patients to train on, if the split is random; None for all that are in
            no other part.
        validation: share of the patients on which epochs are chosen.
        test: share of the test patients, if the split is random.
        split_seed: seed of the random split for all runs; by default the run's seed, so that
            methods are compared on the same patients, and different seeds have different patients.
        shifted: further data sets that are scored as a whole; nothing is trained or chosen on them.
            Data sets named `*-other` have no grades and are out of distribution.
        parts: parts of the dataset to train on in turn: the "whole" dataset, or one part per "site"
            (or camera).
        then: further data sets to train on after `dataset`, in turn.
        on_fault: "stop" at photographs that cannot be used, or "skip" them.
        patients: number of patients to draw, if the dataset is "synthetic".
        artefacts: share of the drawn photographs with an artefact.
        checksum: checksum of the photographs' names, labels and sizes, if they are not drawn; a
            command fills it in.
    """

    dataset: str = "synthetic"
    size: Annotated[int, Field(ge=8, le=2048)] = 64
    crop: bool = True
    normalise: Literal["local", "none"] = "local"
    split: Literal["random", "published"] = "random"
    train: Share | None = None
    validation: ShareBelowOne = 0.1
    test: ShareBelowOne = 0.2
    split_seed: CountOrZero | None = None
    shifted: list[str] = Field(default=[])
    parts: Literal["whole", "site"] = "whole"
    then: list[str] = Field(default=[])
    on_fault: Literal["stop", "skip"] = "stop"
    patients: Count = 1000
    artefacts: Share = 0.15
    checksum: str | None = None

    @field_validator("dataset", "shifted", "then")
    @classmethod
    def _known(cls, value: str | list[str]) -> str | list[str]:
        for name in [value] if isinstance(value, str) else value:
            if name not in FUNDUS_DATASETS:
                raise ValueError(f"{name!r} is not known: choose from {', '.join(FUNDUS_DATASETS)}")
        return value

    @model_validator(mode="after")
    def _others(self) -> DataSettings:
        for name in (self.dataset, *self.then):
            if name.endswith(OTHER):
                raise ValueError(
                    f"{name!r} has no grades to train on: it may be named by shifted alone"
                )
        for name in self.shifted:
            if name in (self.dataset, *self.then):
                raise ValueError(f"shifted names {name!r}, which is trained on")
        if self.dataset in self.then:
            raise ValueError(f"then names {self.dataset!r}, which is the dataset")
        for key in ("shifted", "then"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                raise ValueError(f"{key} names a data set twice")
        kaggle = [name for name in self.names if "eyepacs" in name]
        if len(kaggle) > 1:
            raise ValueError(
                f"{kaggle[0]} and {kaggle[1]} have photographs in common: patients would be "
                "trained on and tested; name one of them"
            )
        if self.split == "random" and self.validation + self.test >= 1:
            raise ValueError(
                f"data.validation = {self.validation:g} and data.test = {self.test:g} leave no "
                "share to train on: lower one of them"
            )
        if self.train is not None and self.split == "published":
            raise ValueError('data.train is for data.split = "random" only: leave it out')
        if self.train is not None and not 0 < self.train <= 1 - self.validation - self.test:
            raise ValueError(
                f"data.train = {self.train:g} is not above 0, or more than data.validation and "
                "data.test leave: lower one of them"
            )
        return self

    @property
    def names(self) -> list[str]:
        """All data sets, with the training sets first."""
        return [self.dataset, *self.then, *self.shifted]


class Recipe(MethodRecipe):
    """How a method trains and predicts."""

    network: Annotated[str, one_of(*NETWORKS, what="function")] = Key(
        "resnet",
        "'resnet' (`vcl_radial.nn.resnet`), the paper's 'vgg' (`vcl_radial.nn.vgg`), 'convnet' "
        "(`vcl_radial.nn.convnet`), 'efficientnet-lite0' (ImageNet's weights, held: one linear "
        "layer with the posterior learns on its features), or a function from outside",
    )
    truncation: Positive | None = Key(
        None, "threshold in standard deviations of the noise of training (Appendix F)"
    )
    channels: Count = Key(16, "channels of the first block of a ResNet or VGG")
    first_stride: Annotated[int, Field(ge=1, le=4)] = Key(1, "stride of a VGG's first layer")
    targets: Literal["levels", "referable"] = Key(
        "levels",
        "what the network is trained on: the five levels of retinopathy, whose probabilities from "
        "level 2 on add up to that of referable disease, or referable or not, as in the paper",
    )
    optimizer: Annotated[str, one_of("amsgrad", "adam", "sgd", what="function")] = Key(
        "adam",
        "'sgd' has Nesterov's momentum of 0.9; or `package.module:function` from parameters and lr",
    )
    learning_rate: Positive = Key(6e-3, "largest learning rate of the schedule")
    learning_rate_decay: Annotated[float, Field(gt=0, le=1)] = Key(
        1.0, "factor of the learning rate after each epoch"
    )
    schedule: Literal["constant", "cosine", "one-cycle"] = Key(
        "one-cycle", "schedule of the learning rate, step by step"
    )
    batch_size: Count = Key(32, "photographs of a step")
    epochs: Count = Key(14, "the largest number of epochs")
    patience: Count | None = Key(
        None, "epochs without a better validation AUC after which training ends; None for never"
    )
    select: Literal["best", "last"] = Key(
        "last", "the epoch whose weights are kept: the best in validation AUC, or the last"
    )
    augment: bool = Key(True, "whether training images are changed at random (Appendix D.1)")
    rotation: Annotated[float, Field(ge=0, le=180)] = Key(
        17.0, "largest angle of a random rotation, in degrees; 180 in the paper"
    )
    train_samples: Count = Key(1, "weight samples of a step")
    validation_samples: Count = Key(1, "weight samples of a prediction on the validation part")
    eval_samples: Count = Key(16, "weight samples of a prediction that is scored")
    precision: Literal["float32", "bfloat16"] = Key("float32", "precision of forward products")

    @model_validator(mode="after")
    def _goes_together(self) -> Recipe:
        if self.truncation is not None and self.posterior != "gaussian":
            raise ValueError('truncation needs posterior = "gaussian"')
        if self.network == LITE0 and self.augment:
            raise ValueError(
                f"network = {LITE0!r} has features of unchanged photographs: set augment = false"
            )
        if self.first_stride != 1 and self.network != "vgg":
            raise ValueError('first_stride needs network = "vgg"')
        return self


TABLES = ("predictions", "scores", "calibration", "history")
"""Tables of a finished run, each a CSV file."""

VALIDATION: Final = "validation"
"""The last word in the name of a validation part."""


class Run(MethodRun):
    """A run on photographs.

    If it is scored on validation data, it sees neither the test part nor the shifted sets.
    """

    TRACK: ClassVar[str] = "retinopathy"
    LIKELIHOOD: ClassVar[str] = "categorical"

    data: DataSettings
    recipe: Recipe

    @model_validator(mode="after")
    def _epochs_are_chosen_on_something(self) -> Run:
        by_epoch = self.recipe.select == "best" or self.recipe.patience is not None
        if by_epoch and self.data.validation == 0:
            raise ValueError(
                'select = "best" and patience need data.validation above 0: set select = "last"'
            )
        return self

    @property
    def needed(self) -> DataSettings:
        """The data to prepare, with the seed of their split.

        If the run is scored on validation data, the shifted sets are left out.
        """
        seed = self.seed if self.data.split_seed is None else self.data.split_seed
        shifted = self.data.shifted if self.evaluate_on == "test" else []
        return self.data.model_copy(update={"split_seed": seed, "shifted": shifted})

    @property
    def result_files(self) -> tuple[str, ...]:
        """Names of the files of a finished run.

        The weights after every site are not kept for a run that is scored on validation data,
        because a search makes many such runs and needs only their scores.
        """
        weights = ("weights.pt",) if self.evaluate_on == "test" else ()
        tables = (f"{name}.csv" for name in TABLES)
        return ("spec.toml", *tables, "environment.json", *weights)

    def data_facts(self, data_dir: Path | None) -> dict[str, Any]:
        """The checksum of the photographs that the run needs, unless all are drawn.

        Raises:
            UserError: the labels cannot be read.
        """
        from vcl_radial.tracks.retinopathy.checksums import checksum

        return {"checksum": checksum(self.needed, data_dir)}
