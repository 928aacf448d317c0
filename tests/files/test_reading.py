"""Files from outside are regular, of bounded size, and never waited for."""

import contextlib
import gzip
import hashlib
import lzma
import os
import socket

import pytest

from vcl_radial.files import reading


def fifo(path):
    os.mkfifo(path)


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
        server.bind(path.name)  # a socket's path is short; pytest's are not


def device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [fifo, unix_socket, device, os.mkdir])
@pytest.mark.parametrize("read", [reading.read_bytes, reading.read_toml, reading.open_data])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, make, read):
    path = tmp_path / "input"
    make(path)
    with pytest.raises(OSError, match=r"not a regular file|No such device"):
        read(path)


def test_a_sparse_file_is_not_read_beyond_the_limit(tmp_path):
    path = tmp_path / "input"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="64 MiB"):
        reading.read_bytes(path)


def test_an_endless_file_of_the_system_is_not_read_beyond_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "input"
    path.write_bytes(bytes(100))
    real = os.fstat(os.open(path, os.O_RDONLY))
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((*real[:6], 0, *real[7:])))
    with pytest.raises(OSError, match="more than"):
        reading.read_bytes(path, limit=99)


@pytest.mark.parametrize("size", [999, 1000])
def test_compressed_data_are_read_up_to_the_limit(tmp_path, size):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(bytes(size)))
    with reading.open_data(path, limit=1000) as file:
        assert file.read() == bytes(size)


def test_compressed_data_beyond_the_limit_are_refused(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(bytes(10**7)))
    with reading.open_data(path, limit=1000) as file, pytest.raises(OSError, match="more than"):
        file.read()


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_bytes(b'\xef\xbb\xbfname = "a"\r\nnumber = 1\r\n')
    assert reading.read_text(path) == 'name = "a"\nnumber = 1\n'
    assert reading.read_toml(path) == {"name": "a", "number": 1}


def test_deep_nesting_is_a_fault_of_the_content(tmp_path):
    path = tmp_path / "done"
    for opening in ("[", '{"a":'):
        path.write_text(opening * 100_000)
        with pytest.raises(ValueError, match="nested too deeply"):
            reading.read_json(path)
    for opening in ("[", "{a="):
        with pytest.raises(ValueError, match="nested too deeply"):
            reading.parse_toml("a = " + opening * 100_000)


@pytest.mark.parametrize(
    ("depth", "fits"), [(reading._DEEPEST - 2, True), (reading._DEEPEST + 1, False), (900, False)]
)
def test_values_are_nested_so_deeply_and_no_deeper(tmp_path, depth, fits):
    path = tmp_path / "done"
    path.write_text("[" * depth + "]" * depth)
    dotted = ".".join("a" * depth) + " = 1"
    for read in (lambda: reading.read_json(path), lambda: reading.parse_toml(dotted)):
        with contextlib.nullcontext() if fits else pytest.raises(ValueError, match="too deeply"):
            read()


def test_xz_is_read_up_to_the_limit(tmp_path):
    path = tmp_path / "evidence.csv.xz"
    path.write_bytes(lzma.compress(bytes(10**7)))
    with reading.open_text(path, limit=10**7) as file:
        assert len(file.read()) == 10**7
    with reading.open_text(path, limit=10**7 - 1) as file, pytest.raises(OSError, match="more"):
        file.read()


def test_a_checksum_is_that_of_the_bytes_of_a_regular_file(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"abc")
    assert reading.checksum(path) == hashlib.sha256(b"abc").hexdigest()
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="MiB"):
        reading.checksum(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="pipe"):
        reading.checksum(path)
