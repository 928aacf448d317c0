"""Task sequences, cut from whole tensors."""

from typing import TYPE_CHECKING

from vcl_radial.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from vcl_radial.data.streams.batches import TensorBatches, TensorLoading
    from vcl_radial.data.streams.benchmark import to_avalanche
    from vcl_radial.data.streams.build import build_stream
    from vcl_radial.data.streams.datasets import checksum, load_dataset
    from vcl_radial.data.streams.image_data import ImageData
    from vcl_radial.data.streams.permuted import permuted_stream
    from vcl_radial.data.streams.split import split_stream
    from vcl_radial.data.streams.tensors import TensorStream

__all__ = [
    "ImageData",
    "TensorBatches",
    "TensorLoading",
    "TensorStream",
    "build_stream",
    "checksum",
    "load_dataset",
    "permuted_stream",
    "split_stream",
    "to_avalanche",
]

# Imported when first used: PyTorch and Avalanche take seconds.
_MODULES = {
    "TensorBatches": "batches",
    "TensorLoading": "batches",
    "to_avalanche": "benchmark",
    "build_stream": "build",
    "checksum": "datasets",
    "load_dataset": "datasets",
    "ImageData": "image_data",
    "permuted_stream": "permuted",
    "split_stream": "split",
    "TensorStream": "tensors",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
