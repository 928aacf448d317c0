"""Output that cannot be written ends no work."""

import errno
import io
import os
import subprocess
import sys
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import pytest

from vcl_radial.cli import main
from vcl_radial.system.output import terminal, unfailing_output

FULL = Path("/dev/full")


@contextmanager
def printing_to(descriptor: int):
    """Standard output into a file descriptor; not as a fixture, since a capture begins later."""
    before = sys.stdout
    with io.TextIOWrapper(io.BufferedWriter(io.FileIO(descriptor, "w")), "utf-8") as stream:
        sys.stdout = stream
        try:
            yield
        finally:
            sys.stdout = before


def closed_pipe():
    """Standard output into a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    return printing_to(writer)


def full_device():
    """Standard output onto a full device."""
    if not FULL.exists():
        pytest.skip("there is no /dev/full here")
    return printing_to(os.open(FULL, os.O_WRONLY))


def test_printing_to_a_pipe_that_nobody_reads_is_nothing():
    with closed_pipe():
        before = sys.stdout
        with unfailing_output() as lost:
            print("a line " * 10_000, flush=True)
            print("another one")
        assert sys.stdout is before
    assert lost.errors == []


def test_a_full_device_is_remembered_once():
    with full_device(), unfailing_output() as lost:
        for _ in range(3):
            print("a line", flush=True)
    assert [error.errno for error in lost.errors] == [errno.ENOSPC]


def test_what_is_printed_arrives_with_odd_characters_as_codes(tmp_path):
    path = tmp_path / "output"
    with path.open("w", encoding="latin-1") as stream, redirect_stdout(stream), unfailing_output():
        print("caf\xe9 \u2191")
    assert path.read_text(encoding="latin-1") == "caf\xe9 \\u2191\n"


ARGUMENTS = ["--set", "epochs=1", "hidden=[8]", "stream.tasks=2"]


def test_a_run_whose_output_nobody_reads_is_finished(tmp_path, capfd):
    out = tmp_path / "runs"
    run = ["run", "split-digits-multi-head", "--method", "naive", "--jobs", "1"]
    with closed_pipe():
        assert main([*run, *ARGUMENTS, "--device", "cpu", "--out", str(out)]) == 0
    assert len(list(out.rglob("done"))) == 1
    assert not list(out.rglob("failed.txt"))
    assert (out / "report" / "split-digits-multi-head.html").is_file()
    assert capfd.readouterr().err == ""


def test_an_output_that_is_full_is_one_line_and_a_failure(capfd):
    with full_device():
        assert main(["list"]) == 1
    line = "vcl-radial: the output cannot be written: No space left on device\n"
    assert capfd.readouterr().err == line


@pytest.mark.processes
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_end_no_command(closed, tmp_path):
    run = ["run", "split-digits-multi-head", "--method", "naive", "ewc", "--jobs", "2"]
    for arguments in (["list"], [*run, *ARGUMENTS, "--device", "cpu", "--out", str(tmp_path)]):
        command = ["-c", f'exec "$0" "$@" {closed}', sys.executable, "-m", "vcl_radial"]
        done = subprocess.run(
            ["sh", *command, *arguments], check=False, capture_output=True, text=True
        )
        assert done.returncode == 0
        assert done.stderr == ""
    assert len(list(tmp_path.rglob("done"))) == 2
    assert (tmp_path / "report" / "split-digits-multi-head.html").is_file()


@pytest.mark.parametrize(
    "odd", ["\x1b]0;title\x07", "\x1b[2J", "\r", "\x9b2J", "\u202e", "\u2066", "\u2028", "\x7f"]
)
def test_no_control_character_is_printed_but_line_feeds_and_tabs(tmp_path, odd):
    path = tmp_path / "output"
    with path.open("w", encoding="utf-8") as stream, redirect_stdout(stream), unfailing_output():
        print(f"a\tb\n{odd}→")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("a\tb\n\\")
    assert text.endswith("→\n")
    assert not set(odd) & set(text) - set("0123456789[];title2J")


def test_whoever_draws_on_a_terminal_writes_below(tmp_path):
    path = tmp_path / "output"
    with path.open("w", encoding="utf-8") as stream, redirect_stdout(stream), unfailing_output():
        terminal(sys.stdout).write("\x1b[1A")
        assert terminal(terminal(sys.stdout)) is terminal(sys.stdout)
    assert path.read_text(encoding="utf-8") == "\x1b[1A"


@pytest.mark.parametrize("word", ["run", "check", "sweep", "report"])
def test_a_name_that_a_command_repeats_moves_no_cursor(word, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main([word, "x\x1b[2J\u202e\n\r.toml"]) == 1
    printed = "".join(capfd.readouterr())
    assert printed.isprintable() or printed.replace("\n", "").isprintable()
    assert printed.count("\n") == 1


def test_a_key_a_method_and_a_fault_are_written_visibly(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(
        "from vcl_radial.methods.base import Method\n"
        "class Own(Method):\n"
        "    def begin_task(self, *_, **__):\n"
        "        raise RuntimeError('\\x1b]0;t\\x07\\u202e')\n"
    )
    name = "m\x1b[31m<script>"
    Path(f"{name}.toml").write_text('strategy = "own:Own"\nposterior = "none"\n')
    run = ["run", "split-digits-multi-head", "--method", f"{name}.toml", "naive", "--jobs", "1"]
    main([*run, *ARGUMENTS, "--device", "cpu", "--out", "runs"])
    files = [path for path in Path("runs").rglob("*") if path.suffix in (".txt", ".csv", ".html")]
    texts = [*capfd.readouterr(), *(path.read_text() for path in files)]
    assert any(path.name == "failed.txt" for path in files)
    (page,) = (path.read_text() for path in files if path.suffix == ".html")
    assert "[31m&lt;script" in page
    assert "[31m<script" not in page
    for text in texts:
        assert text.replace("\n", "").replace("\t", "").isprintable()
