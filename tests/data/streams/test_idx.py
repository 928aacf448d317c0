import gzip
import hashlib
import os
from pathlib import Path

import pytest
import torch
from failing import data_fails
from idx_files import idx_bytes, write_idx

from vcl_radial.data.data_files import IDX_NAMES, idx_files
from vcl_radial.data.streams.idx import read_idx

IMAGES = torch.arange(2 * 3 * 5, dtype=torch.uint8).reshape(2, 3, 5)


FIX = "copy it again from its source"


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("values", [IMAGES, torch.tensor([3, 1, 255], dtype=torch.uint8)])
def test_what_was_written_is_read_back(tmp_path: Path, suffix: str, values: torch.Tensor) -> None:
    path = write_idx(tmp_path / f"values{suffix}", values)
    assert torch.equal(read_idx(path, values.dim()), values)


def test_a_file_cut_at_any_byte_is_reported(tmp_path: Path) -> None:
    for suffix, contents in (("", idx_bytes(IMAGES)), (".gz", gzip.compress(idx_bytes(IMAGES)))):
        path = tmp_path / f"images{suffix}"
        for length in range(len(contents)):
            path.write_bytes(contents[:length])
            with data_fails(path, FIX):
                read_idx(path, 3)


def test_a_flipped_byte_in_the_compressed_values_is_reported(tmp_path: Path) -> None:
    path = write_idx(tmp_path / "images.gz", IMAGES)
    contents = bytearray(path.read_bytes())
    for place in range(10, len(contents)):  # the first ten bytes are gzip's own header
        contents[place] ^= 0xFF
        path.write_bytes(contents)
        with data_fails(path, FIX):
            read_idx(path, 3)
        contents[place] ^= 0xFF


@pytest.mark.parametrize(
    ("name", "contents", "words"),
    [
        ("images", idx_bytes(IMAGES)[:-4], "42 of 46 bytes"),
        ("images", idx_bytes(IMAGES) + b"x", "more than the expected 46"),
        *(
            ("images", magic + idx_bytes(IMAGES)[4:], f"{magic.hex()}, not 00000803")
            for magic in (b"\x00\x00\x08\x01", b"\x00\x00\x0d\x03", b"\x89PNG")
        ),
        ("images.gz", b"<html>not found</html>", "gzip"),
        ("images.gz", gzip.compress(idx_bytes(IMAGES), mtime=0)[:-12], "ended"),
        ("images", idx_bytes(torch.empty(0, 3, 5)), "no values"),
        ("images", idx_bytes(IMAGES)[:4] + b"\xff" * 42, "of 79228162458"),
        ("images", None, "cannot be read"),
    ],
)
def test_every_kind_of_damage_has_its_words(
    tmp_path: Path, name: str, contents: bytes | None, words: str
) -> None:
    path = tmp_path / name
    path.mkdir() if contents is None else path.write_bytes(contents)
    with data_fails(path, words, FIX):
        read_idx(path, 3)


@pytest.mark.parametrize("shape", [(2, 3, 5), (0, 3, 5)])
def test_a_file_is_decompressed_no_further_than_its_header_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx_bytes(torch.zeros(shape)) + bytes(100 << 20), 1))
    contents = gzip.GzipFile.readinto
    read = []

    def counted(self: gzip.GzipFile, buffer: memoryview) -> int:
        read.append(contents(self, buffer))
        return read[-1]

    monkeypatch.setattr(gzip.GzipFile, "readinto", counted)
    with data_fails(path, "more than the expected", FIX):
        read_idx(path, 3)
    assert sum(read) < 1 << 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_in_place_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "images")
    with data_fails(tmp_path / "images", "pipe"):
        read_idx(tmp_path / "images", 3)


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
    with data_fails(path, found, expected, FIX):
        read_idx(path, 3, sha256=expected)


def test_the_fix_is_the_callers(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(b"")
    with data_fails(path, "; ask for it"):
        read_idx(path, 3, fix="ask for it")


def test_the_compressed_file_is_found_before_the_extracted_one(tmp_path: Path) -> None:
    name = IDX_NAMES[0]
    assert idx_files(tmp_path) == {}
    plain = write_idx(tmp_path / name, IMAGES)
    assert idx_files(tmp_path) == {name: plain}
    compressed = write_idx(tmp_path / f"{name}.gz", IMAGES)
    assert idx_files(tmp_path) == {name: compressed}
