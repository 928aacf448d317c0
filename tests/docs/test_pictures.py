"""A picture of a page is the one that its command draws from the files beside it."""

import numpy as np
import pytest
from doc_pages import ROOT
from PIL import Image

from reports.__main__ import main
from reports.pictures import PICTURES
from vcl_radial.reporting.figures.style import save


@pytest.mark.slow
@pytest.mark.drawn
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_one_that_the_command_draws(name, tmp_path):
    png, _ = save(PICTURES[name](), tmp_path / "picture")
    drawn, committed = (
        np.asarray(Image.open(path).convert("L"), dtype=float)
        for path in (png, ROOT / "reports" / f"{name}.png")
    )
    assert drawn.shape == committed.shape
    assert abs(drawn - committed).mean() < 1.0


def test_an_unknown_picture_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["pictures", "no-picture"])
    assert next(iter(PICTURES)) in capsys.readouterr().err
