import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.error import URLError

import pytest
from failing import data_fails, fails

from vcl_radial.data.data_files import DATA_VARIABLE, IDX_NAMES, user_files, user_root
from vcl_radial.data.streams import load_dataset
from vcl_radial.files.cache import cache_root


def test_importing_streams_loads_neither_avalanche_nor_torchvision() -> None:
    program = (
        "import sys, vcl_radial.data.streams;"
        "print([m for m in ('avalanche', 'torchvision', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout.strip() == b"[]"


def test_a_named_folder_goes_before_the_environment_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "b"))
    assert user_root(tmp_path / "a") == tmp_path / "a"
    assert user_root(None) == tmp_path / "b"
    monkeypatch.delenv(DATA_VARIABLE)
    assert user_root(None) is None


def test_the_cache_follows_the_xdg_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "vcl_radial"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache" / "vcl_radial"


def test_without_a_home_the_cache_is_private_and_in_the_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def homeless(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"vcl_radial-{os.getuid()}"
    assert cache_root() == cache_root() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    uid = os.getuid() + 1
    (tmp_path / f"vcl_radial-{uid}").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: uid)
    with fails(tmp_path / f"vcl_radial-{uid}", "XDG_CACHE_HOME"):
        cache_root()


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_folder_below_the_home_of_nobody_is_reported(
    monkeypatch: pytest.MonkeyPatch, by_variable: bool
) -> None:
    named = Path("~no-such-user", "data")
    monkeypatch.setenv(DATA_VARIABLE, str(named))
    with fails(named, "not a folder"):
        user_root(None if by_variable else named)


@pytest.mark.parametrize("place", ["", "raw", "FashionMNIST/raw"])
def test_files_are_found_in_each_of_the_three_places(
    tmp_path: Path, idx_folder: Path, place: str
) -> None:
    target = tmp_path / "data" / place
    shutil.copytree(idx_folder, target)
    files = user_files(tmp_path / "data", "FashionMNIST")
    assert {name: path.parent for name, path in files.items()} == dict.fromkeys(IDX_NAMES, target)


def test_missing_files_are_named_with_the_place_that_has_most_of_them(idx_folder: Path) -> None:
    (idx_folder / f"{IDX_NAMES[1]}.gz").unlink()
    (idx_folder / f"{IDX_NAMES[2]}.gz").unlink()
    with data_fails(idx_folder, IDX_NAMES[1], IDX_NAMES[2]) as error:
        load_dataset("fashion-mnist", idx_folder)
    assert IDX_NAMES[0] not in str(error.value)


def test_an_empty_named_folder_is_reported_and_nothing_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, no_user_data: Path, tmp_path: Path
) -> None:
    import torchvision.datasets.mnist as source

    def download(*args: object, **kwargs: object) -> None:
        pytest.fail("a download was tried")

    monkeypatch.setattr(source, "download_and_extract_archive", download)
    (tmp_path / "mine").mkdir()
    with data_fails(tmp_path / "mine" / "FashionMNIST" / "raw", *IDX_NAMES):
        load_dataset("fashion-mnist", tmp_path / "mine")
    assert not list((tmp_path / "mine").iterdir())


def test_without_a_network_the_files_and_their_folder_are_named(
    monkeypatch: pytest.MonkeyPatch, no_user_data: Path
) -> None:
    import torchvision.datasets.mnist as source

    def download(*args: object, **kwargs: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr(source, "download_and_extract_archive", download)
    raw = no_user_data / "FashionMNIST" / "raw"
    with fails("FashionMNIST", "no network", raw, *(f"{name}.gz" for name in IDX_NAMES)):
        load_dataset("fashion-mnist")


def test_rubbish_in_the_cache_is_detected(no_user_data: Path, idx_folder: Path) -> None:
    raw = no_user_data / "FashionMNIST" / "raw"
    shutil.copytree(idx_folder, raw)
    with data_fails(raw / f"{IDX_NAMES[0]}.gz", "published", "delete it and run again"):
        load_dataset("fashion-mnist")


def test_a_download_fills_the_cache_and_is_read(
    monkeypatch: pytest.MonkeyPatch, real_data: Path, no_user_data: Path
) -> None:
    import torchvision.datasets.mnist as source
    from torchvision.datasets.utils import extract_archive

    def download(url: str, download_root: str, filename: str, md5: str) -> None:
        path = Path(download_root) / filename
        shutil.copyfile(real_data / "MNIST" / "raw" / filename, path)
        extract_archive(str(path))

    monkeypatch.setattr(source, "download_and_extract_archive", download)
    data = load_dataset("mnist", None)
    assert data.train_y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert len(list((no_user_data / "MNIST" / "raw").iterdir())) == 8
