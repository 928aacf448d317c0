import gzip
import hashlib
import re
from pathlib import Path

import pytest
import torch
from idx_files import idx_bytes, write_idx

from vcl_radial.data.streams.idx import read_idx
from vcl_radial.data_files import find_idx
from vcl_radial.errors import DataError

IMAGES = torch.arange(2 * 3 * 5, dtype=torch.uint8).reshape(2, 3, 5)


def assert_one_line_naming(error: pytest.ExceptionInfo[DataError], path: Path) -> None:
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith("copy it again from its source")


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("values", [IMAGES, torch.tensor([3, 1, 255], dtype=torch.uint8)])
def test_what_was_written_is_read_back(tmp_path: Path, suffix: str, values: torch.Tensor) -> None:
    path = write_idx(tmp_path / f"values{suffix}", values)
    assert torch.equal(read_idx(path, values.dim()), values)


def test_a_truncated_plain_file_is_reported_with_both_lengths(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(idx_bytes(IMAGES)[:-4])
    with pytest.raises(DataError, match=r"truncated \(expected 46 bytes, found 42\)") as error:
        read_idx(path, 3)
    assert_one_line_naming(error, path)


def test_a_file_cut_at_any_byte_is_reported(tmp_path: Path) -> None:
    for suffix, contents in (("", idx_bytes(IMAGES)), (".gz", gzip.compress(idx_bytes(IMAGES)))):
        path = tmp_path / f"images{suffix}"
        for length in range(len(contents)):
            path.write_bytes(contents[:length])
            with pytest.raises(DataError) as error:
                read_idx(path, 3)
            assert_one_line_naming(error, path)


def test_a_flipped_byte_in_the_compressed_values_is_reported(tmp_path: Path) -> None:
    path = write_idx(tmp_path / "images.gz", IMAGES)
    contents = bytearray(path.read_bytes())
    for place in range(10, len(contents)):  # the first ten bytes are gzip's own header
        contents[place] ^= 0xFF
        path.write_bytes(contents)
        with pytest.raises(DataError) as error:
            read_idx(path, 3)
        assert_one_line_naming(error, path)
        contents[place] ^= 0xFF


def test_bytes_after_the_values_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(idx_bytes(IMAGES) + b"x")
    with pytest.raises(DataError, match=r"damaged \(expected 46 bytes, found 47\)"):
        read_idx(path, 3)


@pytest.mark.parametrize("magic", [b"\x00\x00\x08\x01", b"\x00\x00\x0d\x03", b"\x89PNG"])
def test_another_magic_number_is_reported_with_the_right_one(tmp_path: Path, magic: bytes) -> None:
    path = tmp_path / "images"
    path.write_bytes(magic + idx_bytes(IMAGES)[4:])
    with pytest.raises(DataError, match=f"{magic.hex()}, expected 00000803") as error:
        read_idx(path, 3)
    assert_one_line_naming(error, path)


def test_a_file_that_is_not_gzip_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match="damaged") as error:
        read_idx(path, 3)
    assert_one_line_naming(error, path)


def test_a_file_without_values_is_reported(tmp_path: Path) -> None:
    path = write_idx(tmp_path / "images", torch.empty(0, 3, 5))
    with pytest.raises(DataError, match="no values"):
        read_idx(path, 3)


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read") as error:
        read_idx(tmp_path, 3)
    assert_one_line_naming(error, tmp_path)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_one_checksum_serves_the_compressed_and_the_extracted_file(
    tmp_path: Path, suffix: str
) -> None:
    path = write_idx(tmp_path / f"images{suffix}", IMAGES)
    expected = hashlib.sha256(idx_bytes(IMAGES)).hexdigest()
    assert torch.equal(read_idx(path, 3, sha256=expected), IMAGES)


def test_an_altered_file_is_reported_with_both_checksums(tmp_path: Path) -> None:
    expected = hashlib.sha256(idx_bytes(IMAGES)).hexdigest()
    altered = IMAGES.clone()
    altered[1, 2, 4] = 99
    found = hashlib.sha256(idx_bytes(altered)).hexdigest()
    path = write_idx(tmp_path / "images.gz", altered)
    with pytest.raises(DataError, match=f"{found}, expected {expected}") as error:
        read_idx(path, 3, sha256=expected)
    assert_one_line_naming(error, path)


def test_the_mend_is_the_callers(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(b"")
    with pytest.raises(DataError, match=re.escape(": ask for it") + "$"):
        read_idx(path, 3, mend="ask for it")


def test_the_compressed_file_is_found_before_the_extracted_one(tmp_path: Path) -> None:
    assert find_idx(tmp_path, "images") is None
    plain = write_idx(tmp_path / "images", IMAGES)
    assert find_idx(tmp_path, "images") == plain
    compressed = write_idx(tmp_path / "images.gz", IMAGES)
    assert find_idx(tmp_path, "images") == compressed


def test_a_cut_gzip_file_is_reported_with_what_could_be_read_of_it(tmp_path: Path) -> None:
    images = torch.randint(0, 256, (100, 28, 28), dtype=torch.uint8)
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx_bytes(images))[:50_000])
    with pytest.raises(DataError, match=r"truncated \(its gzip stream ends early, after ") as error:
        read_idx(path, 3)
    read, whole = (int(n) for n in re.findall(r"after (\d+) of (\d+) bytes", str(error.value))[0])
    assert 40_000 < read < whole == 100 * 28 * 28 + 16
