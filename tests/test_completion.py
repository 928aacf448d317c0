"""`vcl-radial completion`: a shell completes commands, options and shipped names."""

import shutil
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "split-mn"], "split-mnist-single-head"),
        (["run", "split-mnist-single-head", "--method", "radial-v"], "radial-vcl-eq44"),
        (["sweep", "tune-rad"], "tune-radial"),
        (["pre"], "predict"),
        (["run", "--se"], "--seeds"),
    ],
)
def test_bash_completes_commands_options_and_names(command, words, expected):
    pytest.importorskip("shtab", reason="shtab is not installed")
    bash = shutil.which("bash")
    code, script, err = command("completion", "bash")
    assert (code, err) == (0, [])
    ask = f"""
COMP_WORDS=(vcl-radial {" ".join(words)})
COMP_CWORD={len(words)}
function=$(complete -p vcl-radial | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    answer = subprocess.run(
        [bash, "-c", script + ask], capture_output=True, text=True, check=True
    ).stdout
    assert expected in answer.split()


def test_without_shtab_one_line_names_the_package(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    code, _, (line,) = command("completion", "zsh")
    assert code == 1
    assert "vcl-radial[completion]" in line
