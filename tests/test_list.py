"""`vcl-radial list NAME`, `list WORD` and `list --json`."""

import json

import pytest
from failing import refuses

from vcl_radial.cli.about import AboutMethod, about, names, options_of
from vcl_radial.methods.base import Method
from vcl_radial.methods.options import check_method_options
from vcl_radial.methods.registry import built_in, built_in_class
from vcl_radial.methods.traits import MethodTraits
from vcl_radial.methods.vcl import VCL
from vcl_radial.runs import catalogue, tracks

CLASSES = {name: built_in_class(name) for name in built_in()}


def test_a_method_is_described_with_its_equation_source_options_and_tracks(command):
    code, out, err = command("list", "lwf")
    assert (code, err) == (0, [])
    for part in (
        catalogue.load("method", "lwf").description,
        "Li and Hoiem",  # the source
        "Carries: ",
        "temperature = 2.0   a number above 0",
        "Not in regression: ",
    ):
        assert part in out


@pytest.mark.parametrize("name", ["split-mnist-single-head", "tune-radial", "uniform"])
def test_a_benchmark_a_sweep_and_a_rule_are_described_with_their_file(command, name):
    code, out, err = command("list", name)
    assert (code, err) == (0, [])
    page = about(name)
    assert page.description in out
    assert page.command in out
    for text in page.files.values():
        assert all(line.strip() in out for line in text.splitlines())


def test_a_word_leaves_the_lines_that_have_it(command):
    code, out, err = command("list", "HSU")
    assert (code, err) == (0, [])
    rows = [line for line in out.splitlines() if line.startswith("  ")]
    assert len(rows) >= 2
    assert all("hsu" in row.lower() for row in rows)


def test_json_holds_what_the_text_holds(command):
    lists = json.loads(command("list", "--json")[1])
    listed = {name for table in lists.values() for name in table}
    assert names().keys() <= listed
    page = json.loads(command("list", "ewc", "--json")[1])
    assert [option["key"] for option in page["options"]] == ["gamma", "fisher"]
    assert page["gaps"].keys() == set(tracks.names())


def test_what_is_no_name_word_or_folder_is_refused(command):
    code, out, (line,) = command("list", "no-such-thing")
    assert (code, out) == (1, "")
    assert "no-such-thing" in line
    assert command("list", " ")[0] == 1
    assert command("list", "x" * 5000)[0] == 1  # no path can be so long
    assert "'radial-vcl'" in command("list", "radial-vlc")[2][0]
    assert command("list", ".", "--json")[0] == 1
    with refuses("'ewcc'", "'ewc'"):
        about("ewcc")


@pytest.mark.parametrize("name", CLASSES)
def test_every_option_is_described_and_its_default_accepted(name):
    options = list(options_of(CLASSES[name]))
    assert [o.key for o in options if not o.meaning] == []
    known = {o.key: json.loads(o.default) for o in options if o.default}
    check_method_options(name, CLASSES[name], known)


HOOKS = ("penalty", "begin_task", "end_task", "state_dict")


@pytest.mark.parametrize("name", CLASSES)
def test_a_method_that_does_something_between_tasks_says_what_it_carries(name):
    cls = CLASSES[name]
    acts = any(getattr(cls, hook) is not getattr(Method, hook) for hook in HOOKS)
    if acts and not cls.memoryless:
        assert cls.carries != MethodTraits.carries
    elif not acts and not issubclass(cls, VCL) and not cls.needs_whole_stream:
        assert cls.carries == MethodTraits.carries


def test_the_command_of_a_method_is_of_a_track_that_it_runs_in():
    for name in ("colour", "uniform", "rdp-vcl-noise-prior", "bayes-linear"):
        page = about(name)
        assert isinstance(page, AboutMethod)
        benchmark = catalogue.load("benchmark", page.command.split()[2])
        assert not page.gaps[benchmark.track]
