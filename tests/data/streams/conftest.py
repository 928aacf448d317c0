from pathlib import Path

import pytest
import torch
from idx_files import write_idx

from vcl_radial.data.data_files import DATA_VARIABLE, IDX_NAMES
from vcl_radial.data.streams import ImageData

N_CLASSES = 10


@pytest.fixture
def tiny() -> ImageData:
    """Ten classes, 20 training and 4 test images each, of 4x3 pixels, in a mixed order."""
    generator = torch.Generator().manual_seed(7)

    def part(per_class: int) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.arange(N_CLASSES).repeat(per_class)
        y = y[torch.randperm(len(y), generator=generator)]
        x = torch.randint(0, 256, (len(y), 4, 3), generator=generator, dtype=torch.uint8)
        return x, y

    names = tuple(f"class {c}" for c in range(N_CLASSES))
    return ImageData("tiny", *part(20), *part(4), names)


@pytest.fixture
def idx_folder(tmp_path: Path, tiny: ImageData) -> Path:
    """The tiny data set as four compressed IDX files."""
    folder = tmp_path / "mine"
    folder.mkdir()
    parts = (tiny.train_x, tiny.train_y, tiny.test_x, tiny.test_y)
    for name, values in zip(IDX_NAMES, parts, strict=True):
        write_idx(folder / f"{name}.gz", values)
    return folder


@pytest.fixture
def no_user_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No data folder is named, and the cache folder is an empty one, which is returned."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vcl_radial"
