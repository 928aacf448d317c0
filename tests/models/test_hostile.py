"""A card that was made by hand, with the right checksums, is refused in one line or harmless."""

import json
from contextlib import suppress

import pytest
import torch

import vcl_radial as vr
from vcl_radial.errors import VclRadialError
from vcl_radial.models import format as files
from vcl_radial.reporting.model_card import card_text
from vcl_radial.runs.updating import model_lines

WRONG = (None, -1, 10**9, 0.5, True, "x", [], ["x"], [-1], [[]], {}, {"tensor": "x"})


def places(value, path=()):
    """The paths of all values in a nest of tables and lists."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*path, number))


def changed(value, path, new):
    """The nest with another value at a path."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return value | {key: changed(value[key], rest, new)}
    return [changed(v, rest, new) if n == key else v for n, v in enumerate(value)]


@pytest.mark.parametrize("key", ["input", "tasks", "heads", "multi_head", "track", "spec"])
def test_a_changed_value_of_a_card_is_refused_or_harmless(key, finished_run, tmp_path):
    path = finished_run("naive")
    card = files.read_card(path)
    (tmp_path / files.TENSORS).write_bytes((path / files.TENSORS).read_bytes())
    for place in places(card[key]) if key != "spec" else [("recipe",), ("seed",), ("stream",), ()]:
        for wrong in WRONG:
            made = card | {key: changed(card[key], place, wrong)}
            made["card_checksum"] = files._checksum_of(made)
            (tmp_path / files.CARD).write_text(json.dumps(made))
            try:
                model = vr.load(tmp_path)
                assert len(model.predict(torch.zeros(2, 64))) == 2
                assert model.tasks
                assert model.classes
            except VclRadialError as error:
                lines = str(error).splitlines()
            except Exception as error:
                pytest.fail(f"{key}{place} = {wrong!r}: {type(error).__name__}: {error}")
            else:
                lines = [""]
            assert len(lines) == 1
            for read in (model_lines, card_text):
                with suppress(VclRadialError):
                    read(tmp_path)
