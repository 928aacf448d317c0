"""Readable names of pictures."""

import pytest

from vcl_radial.reporting.figures.names import (
    _BENCHMARKS,
    _METHODS,
    benchmark_label,
    data_label,
    method_label,
)
from vcl_radial.runs import catalogue


@pytest.mark.parametrize("known", [_METHODS, _BENCHMARKS])
def test_no_two_keys_have_one_name(known):
    assert len(set(known.values())) == len(known)


def test_keys_with_names_are_in_the_catalogue():
    assert {*_BENCHMARKS} <= {*catalogue.names("benchmark")}


@pytest.mark.parametrize("label", [method_label, benchmark_label, data_label])
def test_unknown_names_stay_as_they_are(label):
    for name in ("mine", "類別 (epochs=5)", "", "a (b (c", "mine on own"):
        assert label(name) == name


def test_folders_of_data_and_settings_in_brackets_stay():
    stream = benchmark_label("image-folder-single-head")
    assert benchmark_label("image-folder-single-head on own") == f"{stream}, on own"
    assert method_label("radial-vcl (epochs=5)") == f"{method_label('radial-vcl')} (epochs=5)"
    assert method_label("radial-vcl") == "radial VCL"
