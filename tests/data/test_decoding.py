"""Many pictures at a time, in order, and no more in memory than are needed soon."""

import threading

import pytest

from vcl_radial.data import decoding
from vcl_radial.data.decoding import Unreadable, decoded, opened


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


def test_a_fault_while_the_picture_is_used_is_one_of_the_picture(tmp_path):
    from PIL import Image

    path = tmp_path / "a.png"
    Image.new("RGB", (90, 90), (1, 2, 3)).save(path)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(Unreadable), opened(path) as picture:
        picture.load()
    with pytest.raises(Unreadable, match="the file is missing"), opened(tmp_path / "b.png"):
        pass
