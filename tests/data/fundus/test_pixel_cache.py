"""What is decoded once is what decoding gives, and nothing that is not."""

import errno
import hashlib
import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from failing import fails
from fundus_helpers import damaged, noise_picture, table
from PIL import Image

from vcl_radial.data import decoding, pixel_cache
from vcl_radial.data.fundus import (
    Photograph,
    Photographs,
    SyntheticSettings,
    load_photographs,
    load_pixels,
    synthetic_photographs,
)
from vcl_radial.data.fundus.data import decode_one
from vcl_radial.data.fundus.files import FileReader
from vcl_radial.errors import DataError, UserError

SIZE = 16


def load(photographs, lines, size=SIZE, **options):
    return load_pixels(photographs, size, **{"jobs": 2, "report": lines.append, **options})


def decoded(photographs, size=SIZE, crop=True, normalise="local"):
    reader = photographs.reader
    return np.stack([decode_one(reader, row, size, crop, normalise) for row in photographs.rows])


def pixel_file(cache) -> Path:
    (path,) = cache.glob("*.npy")
    return path


@pytest.mark.parametrize("crop", [True, False])
@pytest.mark.parametrize("jobs", [1, 3])
def test_the_cache_holds_what_decoding_gives(cache, lines, crop, jobs):
    photographs = table()
    data = load(photographs, lines, crop=crop, jobs=jobs)
    expected = decoded(photographs, crop=crop)
    assert np.array_equal(data.images(range(12)).numpy(), expected)
    assert np.array_equal(data.images([5, 0, 5]).numpy(), expected[[5, 0, 5]])
    assert np.array_equal(np.load(pixel_file(cache), allow_pickle=False), expected)


def test_pixels_of_files_are_those_of_the_files(cache, lines, tmp_path):
    rows = []
    for k, suffix in enumerate((".png", ".jpg", ".tif")):
        path = tmp_path / f"{k}{suffix}"
        Image.fromarray(noise_picture(k)).save(path)
        rows.append(Photograph(str(k), str(k), "unknown", 0, "here", path=path))
    photographs = Photographs("files", tuple(rows), FileReader(tmp_path))
    data = load(photographs, lines, size=24, crop=False, normalise="none")
    picture = np.zeros((24, 24, 3), np.uint8)
    picture[2:22] = noise_picture(0)
    assert np.array_equal(data.images([0])[0].numpy(), picture.transpose(2, 0, 1))
    assert np.array_equal(data.images(range(3)).numpy(), decoded(photographs, 24, False, "none"))


def test_a_photograph_is_turned_as_its_exif_entry_says_and_may_have_16_bits(tmp_path):
    grey = noise_picture(1)[..., 0]
    exif = Image.Exif()
    exif[274] = 6
    read = FileReader(tmp_path).read
    for name, pixels in (("a", grey), ("b", grey.astype(np.uint16) << 8)):
        path = tmp_path / f"{name}.png"
        Image.fromarray(pixels).save(path, exif=exif)
        picture = read(Photograph(name, name, "unknown", 0, "here", path=path), SIZE)
        assert np.array_equal(picture, np.rot90(np.stack([grey] * 3, -1), -1))


def test_nothing_is_decoded_twice(cache, lines):
    photographs = table()
    first = load(photographs, lines)
    assert "pixels of noise at 16 px: decoding 12 pictures into" in lines[0]
    reads = dict(photographs.reader.reads)
    assert set(reads.values()) == {1}
    second = load(photographs, lines)
    assert photographs.reader.reads == reads
    assert len(lines) == 1
    assert np.array_equal(first.images(range(12)), second.images(range(12)))
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".lock", ".npy"]


def test_sizes_croppings_and_normalisations_lie_side_by_side(cache, lines):
    photographs = table()
    settings = [(16, True, "local"), (24, True, "local"), (16, False, "local"), (16, True, "none")]
    for size, crop, normalise in [*settings, *settings]:
        data = load(photographs, lines, size=size, crop=crop, normalise=normalise)
        expected = decoded(photographs, size, crop, normalise)
        assert np.array_equal(data.images(range(12)).numpy(), expected)
    assert len(lines) == len(list(cache.glob("*.npy"))) == 4


def changed_file(photographs):
    name = photographs.rows[3].name
    photographs.reader.pictures[name] = noise_picture(99)
    photographs.reader.versions[name] = "2"
    return photographs


@pytest.mark.parametrize(
    "change",
    [
        changed_file,
        lambda photographs: photographs.select(range(11)),
        lambda photographs: photographs.select([1, 0, *range(2, 12)]),
    ],
    ids=["a file", "a row less", "another order"],
)
def test_other_photographs_take_the_place_of_what_was_decoded_before(cache, lines, change):
    photographs = table()
    load(photographs, lines)
    old = pixel_file(cache)
    now = change(photographs)
    data = load(now, lines)
    assert f"decoding {len(now)} pictures" in lines[1]
    assert np.array_equal(data.images(range(len(now))).numpy(), decoded(now))
    assert pixel_file(cache) != old


def test_a_file_that_was_touched_makes_the_cache_stale(cache, lines, tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(noise_picture(0)).save(path)
    row = Photograph("a", "a", "unknown", 0, "here", path=path)
    photographs = Photographs("files", (row,), FileReader(tmp_path))
    load(photographs, lines)
    Image.fromarray(noise_picture(1, high=30)).save(path)
    data = load(photographs, lines)
    assert len(lines) == 2
    assert np.array_equal(data.images([0]).numpy(), decoded(photographs))


def test_another_grade_leaves_the_pixels_as_they_are(cache, lines):
    photographs = table()
    load(photographs, lines)
    regraded = tuple(replace(row, grade=4 - row.grade) for row in photographs.rows)
    data = load(replace(photographs, rows=regraded), lines)
    assert len(lines) == 1
    assert data.photographs.grades.tolist() == (4 - photographs.grades).tolist()


def flipped_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "report"),
    [
        (flipped_bit, "damaged; decoding"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "damaged; decoding"),
        (lambda path: path.with_suffix(".json").write_text("{"), "damaged; decoding"),
        (lambda path: path.with_suffix(".json").write_text("[]"), "damaged; decoding"),
        (lambda path: path.unlink(), "16 px: decoding"),
    ],
    ids=["a flipped bit", "cut short", "no index", "an index of nothing", "gone"],
)
def test_a_damaged_cache_is_reported_and_rebuilt(cache, lines, harm, report):
    photographs = table()
    load(photographs, lines)
    harm(pixel_file(cache))
    data = load(photographs, lines)
    assert report in lines[1]
    assert np.array_equal(data.images(range(12)).numpy(), decoded(photographs))
    load(photographs, lines)
    assert len(lines) == 2


@pytest.mark.parametrize("exception", [KeyboardInterrupt(), MemoryError()])
def test_an_interrupted_build_leaves_nothing_behind_and_the_next_one_is_whole(
    cache, lines, exception
):
    photographs = table()
    name = photographs.rows[7].name
    sound = photographs.reader.pictures[name]
    photographs.reader.pictures[name] = exception
    with pytest.raises(type(exception)):
        load(photographs, lines, jobs=1)
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    photographs.reader.pictures[name] = sound
    data = load(photographs, lines, jobs=1)
    assert np.array_equal(data.images(range(12)).numpy(), decoded(photographs))


def test_what_a_killed_build_left_is_not_taken_for_pixels(cache, lines):
    load(table(), lines)
    path = pixel_file(cache)
    whole = path.read_bytes()
    path.with_suffix(".json").unlink()  # it was killed before it wrote this
    path.with_name(f"{path.stem.rpartition('-')[0]}.partial").write_bytes(whole[:500])
    path.write_bytes(whole[:-7] + bytes(7))
    data = load(table(), lines)
    assert np.array_equal(data.images(range(12)).numpy(), decoded(table()))
    assert not list(cache.glob("*.partial"))


def test_builders_at_the_same_time_wait_for_one_another(cache, lines):
    photographs = table()
    start, found = threading.Barrier(3), []

    def build():
        start.wait()
        found.append(load(photographs, lines).images(range(12)).numpy())

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for pixels in found:
        assert np.array_equal(pixels, decoded(photographs))
    # `decoded` above read everything three times more.
    assert set(photographs.reader.reads.values()) == {4}


def _build(start):
    lines = []
    start.wait()
    photographs = synthetic_photographs(SyntheticSettings(patients=4))
    pixels = load_pixels(photographs, 32, jobs=1, report=lines.append).images(range(8)).numpy()
    return hashlib.sha256(pixels.tobytes()).hexdigest(), lines


def test_processes_at_the_same_time_share_one_cache(cache):
    context = multiprocessing.get_context("fork")
    with multiprocessing.Manager() as manager, ProcessPoolExecutor(2, context) as pool:
        answers = pool.map(_build, [manager.Barrier(2)] * 2)
        (first, its_lines), (second, other_lines) = answers
    assert first == second
    assert len(list(cache.glob("*.npy"))) == 1
    assert sum("decoding 8" in line for line in (*its_lines, *other_lines)) == 1


def test_damaged_photographs_are_named_counted_and_skipped_or_fatal(cache, lines):
    photographs = table()
    pictures = photographs.reader.pictures
    pictures["01_left"], pictures["04_right"] = damaged(), damaged()
    counted = "2 of 12 photographs"
    with fails("noise", counted, "01_left", "04_right", "data.on_fault", kind=DataError):
        load(photographs, lines)
    data = load(photographs, lines, on_fault="skip")
    assert lines[-1].startswith(f"noise: {counted}")
    assert lines[-1].endswith("left out")
    kept = [k for k, row in enumerate(photographs.rows) if row.name not in ("01_left", "04_right")]
    assert data.photographs.rows == photographs.select(kept).rows
    assert [fault.image for fault in data.photographs.faults] == ["01_left", "04_right"]
    assert np.array_equal(data.images(range(10)).numpy(), decoded(photographs.select(kept)))
    assert len(data.classes()) == len(data) == 10
    # Neither the second nor a third time were they tried again.
    load(photographs, lines, on_fault="skip")
    assert photographs.reader.reads["01_left"] == 1


def harmed_files(folder):
    """One file of each kind of harm."""
    Image.fromarray(noise_picture(0)).save(folder / "sound.jpg")
    whole = (folder / "sound.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "text.png").write_text("not found")
    Image.fromarray(noise_picture(0)).save(folder / "torn.png")
    torn = bytearray((folder / "torn.png").read_bytes())
    torn[60:90] = bytes(30)
    (folder / "torn.png").write_bytes(torn)
    Image.fromarray(np.zeros((9, 9), np.int32)).save(folder / "deep.tif")


def test_damaged_files_are_faults_and_sound_ones_are_not(cache, lines, tmp_path):
    harmed_files(tmp_path)
    paths = sorted(p for p in tmp_path.iterdir() if p.is_file())
    gone = tmp_path / "gone.jpg"
    rows = tuple(Photograph(p.stem, p.stem, "unknown", 0, "here", path=p) for p in [*paths, gone])
    photographs = Photographs("files", rows, FileReader(tmp_path))
    data = load(photographs, lines, on_fault="skip")
    assert [row.name for row in data.photographs.rows] == ["sound"]
    faults = {fault.image: fault.detail for fault in data.photographs.faults}
    assert set(faults) == {"cut", "empty", "text", "torn", "deep", "gone"}
    assert faults["gone"] == "the file is missing"
    assert faults["text"] == "its format is none of JPEG, PNG, PPM, BMP, TIFF, WEBP"
    assert "8 or 16 bits" in faults["deep"]
    assert all(detail and "\n" not in detail for detail in faults.values())
    assert str(tmp_path) not in " ".join(faults.values())


def test_a_disk_that_is_too_small_is_reported_before_decoding(cache, lines, monkeypatch):
    photographs = table()
    monkeypatch.setattr(pixel_cache.shutil, "disk_usage", lambda _: type("", (), {"free": 100})())
    with fails(cache, "XDG_CACHE_HOME"):
        load(photographs, lines)
    assert not photographs.reader.reads


def test_a_full_disk_is_one_line_and_the_old_cache_stays(cache, lines, monkeypatch):
    photographs = table()
    load(photographs, lines)
    before = pixel_file(cache).read_bytes()
    stale = changed_file(table())

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pixel_cache.os, "fsync", full)
        with pytest.raises(UserError, match="No space left on device; free"):
            load(stale, lines)
    assert pixel_file(cache).read_bytes() == before
    assert np.array_equal(load(stale, lines).images(range(12)).numpy(), decoded(stale))


def test_a_reader_keeps_the_old_pixels_while_new_ones_are_made(cache, lines):
    photographs = table()
    before = decoded(photographs)
    data = load(photographs, lines)
    load(changed_file(photographs), lines)
    assert np.array_equal(data.images(range(12)).numpy(), before)


def test_without_a_terminal_progress_is_reported_in_lines(cache, lines, monkeypatch):
    monkeypatch.setattr(decoding, "_PATIENCE", -1.0)
    monkeypatch.setattr(decoding, "_EVERY", -1.0)
    load(table(), lines)
    assert lines[1:] == [f"pixels of noise at 16 px: {k} of 12" for k in range(1, 13)]


def test_selected_rows_keep_their_pixels(cache, lines):
    photographs = table()
    photographs.reader.pictures["02_left"] = damaged()
    data = load(photographs, lines, on_fault="skip")
    some = data.select([7, 2, 9])
    assert np.array_equal(some.images([1, 2]), data.images([2, 9]))
    assert some.classes().tolist() == data.classes()[[7, 2, 9]].tolist()


def test_an_impossible_size_is_refused(lines):
    with fails("size", 4, 8):
        load(table(), lines, size=4)


def test_real_photographs_are_decoded_as_they_are(cache, lines, retinopathy):
    for name in ("eyepacs-subset", "idrid"):
        whole = load_photographs(name, retinopathy.parent)
        some = whole.select(range(0, len(whole), len(whole) // 20))
        data = load(some, lines, size=48, normalise="none")
        expected = decoded(some, 48, normalise="none")
        assert np.array_equal(data.images(range(len(some))).numpy(), expected)
        # The field of view fills the square from side to side or from top to bottom.
        lit = data.images(range(len(some))).numpy().max(1) > 20
        extent = np.maximum(lit.any(1).sum(1), lit.any(2).sum(1))
        assert np.quantile(extent, 0.1) >= 46


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_a_large_photograph_is_read_at_a_smaller_scale(tmp_path, suffix):
    for edge in (500, 1600):
        path = tmp_path / f"{edge}{suffix}"
        Image.fromarray(noise_picture(0)).resize((edge + 200, edge)).save(path, compress_level=1)
        row = Photograph("a", "a", "unknown", 0, "here", path=path)
        wide, high = FileReader(tmp_path).read(row, 96).size
        assert min(edge, 512) <= high < 1024
        assert wide / high == pytest.approx((edge + 200) / edge, rel=0.01)
