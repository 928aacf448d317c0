"""A picture in any file, and many at a time, no more in memory than are needed soon."""

import io
import os
import struct
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vcl_radial.data import decoding
from vcl_radial.data.decoding import Unreadable, decoded, read_picture


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 11, 1000])
def test_results_come_in_the_order_of_the_items(n, jobs):
    assert list(decoded(lambda k: k * k, range(n), jobs, "squares", print)) == [
        k * k for k in range(n)
    ]


def test_decoding_is_never_far_ahead_of_whoever_takes_the_results():
    started, lock = [], threading.Lock()

    def decode(k):
        with lock:
            started.append(k)
        return k

    jobs = 2
    for taken, _ in enumerate(decoded(decode, range(2000), jobs, "numbers", print), start=1):
        assert len(started) <= taken + (4 * jobs + 1) * decoding._CHUNK


def test_the_first_fault_ends_it_and_what_waits_is_not_decoded():
    started = []

    def decode(k):
        started.append(k)
        if k == 40:
            raise Unreadable("torn")
        return k

    with pytest.raises(Unreadable, match="torn"):
        list(decoded(decode, range(10_000), 1, "numbers", print))
    assert len(started) < 1000


WIDE = (np.arange(12 * 16).reshape(12, 16) * 340).astype(np.uint16)


def stored(path: Path, pixels: np.ndarray, turn: int = 1) -> Path:
    """A file of grey pixels that EXIF turns."""
    exif = Image.Exif()
    exif[274] = turn
    if path.suffix == ".pgm":
        top = np.iinfo(pixels.dtype).max
        values = pixels.astype(pixels.dtype.newbyteorder(">")).tobytes()
        path.write_bytes(b"P5 16 12 %d\n" % top + values)
    elif path.suffix == ".tif":
        Image.fromarray(pixels).save(path, tiffinfo={274: turn})
    else:
        Image.fromarray(pixels).save(path, exif=exif)
    return path


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_a_turned_picture_of_16_bits_is_that_of_its_upper_8(tmp_path, suffix, turn):
    narrow = (WIDE >> 8).astype(np.uint8)
    pictures = [
        np.asarray(read_picture(stored(tmp_path / f"{k}{suffix}", pixels, turn)))
        for k, pixels in enumerate((narrow, WIDE))
    ]
    assert pictures[0].shape == ((16, 12) if turn > 4 else (12, 16))
    assert np.array_equal(*pictures)
    assert np.array_equal(pictures[0], narrow) == (turn == 1)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_the_upper_8_of_16_bits_are_kept_in_every_format(tmp_path, suffix, order):
    pixels = WIDE.astype(WIDE.dtype.newbyteorder(order)) if suffix == ".tif" else WIDE
    assert np.array_equal(read_picture(stored(tmp_path / f"a{suffix}", pixels)), WIDE >> 8)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_tiff_may_count_its_grey_values_from_white(tmp_path, bits):
    pixels = np.array([[0, 1], [2, 255]]) << (bits - 8)
    tags = {256: 2, 257: 2, 258: bits, 259: 1, 262: 0, 273: 110, 277: 1, 279: bits // 2}
    entries = b"".join(struct.pack("<HHII", tag, 3, 1, value) for tag, value in tags.items())
    head = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)
    (tmp_path / "a.tif").write_bytes(head + pixels.astype(f"<u{bits // 8}").tobytes())
    assert np.asarray(read_picture(tmp_path / "a.tif")).tolist() == [[255, 254], [253, 0]]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_pixels_of_32_bits_are_refused(tmp_path, dtype):
    path = tmp_path / "a.tif"
    Image.fromarray(np.zeros((3, 4), dtype)).save(path)
    with pytest.raises(Unreadable, match="not unsigned integers of 8 or 16 bits"):
        read_picture(path)


@pytest.mark.parametrize(
    ("mode", "suffix", "expected"),
    [
        *(("1", ".png", "L"), ("LA", ".png", "L"), ("RGBA", ".webp", "RGB"), ("P", ".png", "RGB")),
        *(("CMYK", ".jpg", "RGB"), ("L", ".bmp", "L"), ("RGB", ".ppm", "RGB")),
    ],
)
def test_a_picture_of_any_mode_becomes_grey_or_colour(tmp_path, mode, suffix, expected):
    path = tmp_path / f"a{suffix}"
    grey = Image.fromarray(np.full((3, 4), 255, np.uint8))
    grey.convert(mode).save(path)
    picture = read_picture(path)
    assert (picture.mode, picture.size) == (expected, (4, 3))
    assert np.asarray(picture).min() > 250


def test_a_fault_while_the_picture_is_decoded_is_one_of_the_picture(tmp_path):
    path = tmp_path / "a.png"
    Image.new("RGB", (90, 90), (1, 2, 3)).save(path)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(Unreadable):
        read_picture(path)
    with pytest.raises(Unreadable, match="the file is missing"):
        read_picture(tmp_path / "b.png")


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png(width: int, height: int, *chunks: bytes) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(100)))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + pixels + chunk(b"IEND", b"")


def gif() -> bytes:
    content = io.BytesIO()
    Image.new("L", (3, 4)).save(content, "GIF")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n", "its format is none"),
        (gif(), "its format is none of JPEG, PNG, PPM, BMP, TIFF, WEBP"),
        (b"", "its format is none"),
        (png(10_000, 9_500), "its 10000x9500 pixels are more than 89,478,485"),
        (png(60_000, 60_000), "3600000000 pixels"),
        (png(8, 8, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 24)))), "too large"),
        (png(8, 8, chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(1 << 24)))), "too large"),
    ],
    ids=["postscript", "gif", "empty", "large", "larger", "text bomb", "profile bomb"],
)
@pytest.mark.filterwarnings("ignore:Image size:PIL.Image.DecompressionBombWarning")
def test_other_formats_and_bombs_are_refused_before_they_are_decoded(
    tmp_path, monkeypatch, content, words
):
    import subprocess

    monkeypatch.setattr(subprocess, "Popen", None)  # Ghostscript would be started by it
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(Unreadable, match=words):
        read_picture(tmp_path / "a.png")


def test_only_regular_files_of_bounded_size_are_read(tmp_path):
    with pytest.raises(Unreadable, match="is a folder, not a regular file"):
        read_picture(tmp_path)
    path = tmp_path / "a.png"
    path.write_bytes(b"\xff\xd8\xff")
    os.truncate(path, 1 << 40)
    with pytest.raises(Unreadable, match="holds more than 256 MiB"):
        read_picture(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Unreadable, match="is a pipe"):
        read_picture(path)
