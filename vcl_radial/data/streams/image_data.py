"""A classification data set as whole tensors, with its standard training and test parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from vcl_radial.data.streams.tensors import tensors_checksum
from vcl_radial.errors import DataError


@dataclass(frozen=True, eq=False)
class ImageData:
    """Unprocessed images and classes.

    Attributes:
        name: Name of the data set.
        train_x: Training images [N, H, W] or [N, C, H, W], or vectors [N, D]; whole or floating
            point numbers.
        train_y: Training classes [N], whole numbers from 0.
        test_x: Test images [M, ...].
        test_y: Test classes [M].
        class_names: The name of each class, in the conventional order; by default its number.
        groups: Names and classes of groups of classes that are tasks of their own, such as
            alphabets; for `grouped_stream`.
        held_out: Mask of the training images of the validation part, bool [N]; None: streams hold
            out a share of them.

    Raises:
        DataError: The parts do not match, or a class has no training image.
    """

    name: str
    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor
    class_names: tuple[str, ...] = ()
    held_out: Tensor | None = None
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def __post_init__(self) -> None:
        """Reject data that would fail, or give wrong results, later."""
        for fault in self._faults():
            raise DataError(fault, at=self.name)
        object.__setattr__(self, "train_y", self.train_y.long())
        object.__setattr__(self, "test_y", self.test_y.long())
        if not self.class_names:
            names = tuple(str(label) for label in range(int(self.train_y.max()) + 1))
            object.__setattr__(self, "class_names", names)

    def _faults(self) -> Iterator[str]:
        for part in ("train", "test"):
            x, y = getattr(self, f"{part}_x"), getattr(self, f"{part}_y")
            for name, tensor in ((f"{part}_x", x), (f"{part}_y", y)):
                if not isinstance(tensor, Tensor):
                    yield f"{name} must be a tensor, not {type(tensor).__name__}"
            if x.ndim < 2 or list(y.shape) != [len(x)] or not len(x):
                yield (
                    f"{part}_x {list(x.shape)} and {part}_y {list(y.shape)} must be [N, ...] and "
                    "[N], with N above 0"
                )
            if y.is_floating_point() or y.is_complex() or int(y.min()) < 0:
                yield f"{part}_y must be whole numbers from 0"
            if x.is_floating_point() and not bool(torch.isfinite(x).all()):
                yield f"{part}_x has numbers that are not finite"
        if self.train_x.shape[1:] != self.test_x.shape[1:]:
            yield (
                f"train_x is of {list(self.train_x.shape[1:])} and test_x of "
                f"{list(self.test_x.shape[1:])}: give both one size"
            )
        held_out = self.held_out
        if held_out is not None and not (
            held_out.dtype == torch.bool and held_out.shape == self.train_y.shape
        ):
            yield f"held_out {list(held_out.shape)} of {held_out.dtype} must be bool [N] of train_y"
        classes = len(self.class_names) or int(self.train_y.max()) + 1
        highest = max(int(self.train_y.max()), int(self.test_y.max()))
        if highest >= classes:
            known = f"{classes} class_names" if self.class_names else "training images up to"
            limit = "" if self.class_names else f" {classes - 1}"
            yield f"class {highest} is in the data, but there are {known}{limit}"
        if absent := sorted(set(range(classes)) - set(torch.unique(self.train_y).tolist())):
            yield f"class {absent[0]} has no training image: number the classes without gaps"

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.class_names)

    @property
    def checksum(self) -> str:
        """Checksum of all images and labels, and of the validation mask."""
        masks = () if self.held_out is None else (self.held_out,)
        return tensors_checksum(self.train_x, self.train_y, self.test_x, self.test_y, *masks)
