"""The commands and the Python of the page of questions run, on small settings."""

import pytest
from doc_pages import ROOT, blocks

from vcl_radial.cli import main

FAQ = ROOT / "docs" / "faq.md"
SMALL = {
    "split-digits": ["epochs=1", "hidden=[8]", "eval_samples=2"],
    "diabetes": ["steps=10", "eval_samples=2"],
}


@pytest.mark.slow
@pytest.mark.usefixtures("no_report")
def test_what_an_answer_shows_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for block in blocks(FAQ):
        if block.language == "python":
            exec(block.code, {})
            continue
        for line in block.code.splitlines():
            _, *words = line.split()
            if words[0] == "run":
                small = next(keys for name, keys in SMALL.items() if words[1].startswith(name))
                words += ["--jobs", "1", "--device", "cpu"]
                # What the answer sets stays as it is.
                words += ["--set", *(k for k in small if k.partition("=")[0] + "=" not in line)]
            assert main(words) == 0, line
            ran += 1
    assert ran >= 10
    assert "  tasks: " in capsys.readouterr().out
