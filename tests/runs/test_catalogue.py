import os
import tomllib
from pathlib import Path

import pytest
import tomli_w
from failing import refuses
from hypothesis import example, given
from hypothesis import strategies as st

from vcl_radial.cli.arguments import parse_setting
from vcl_radial.errors import UserError
from vcl_radial.runs import catalogue, planning, tracks
from vcl_radial.runs.catalogue import load
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.settings import Run

DIGITS = "split-digits-multi-head"


def test_every_shipped_benchmark_and_method_is_valid_together():
    for benchmark in catalogue.names("benchmark"):
        entry = load("benchmark", benchmark)
        methods = catalogue.names("method", entry.track)
        if "slices" in entry.table.get("data", {}):  # not all of them have a posterior to carry
            methods = entry.table["methods"]
        runs = plan(benchmark, methods, range(2))
        pairs = dict.fromkeys((run.method, run.seed) for run in runs)  # a run for each set
        assert [*pairs] == [(m, s) for m in methods for s in (0, 1)]


@pytest.mark.parametrize("kind", ["benchmark", "method"])
def test_every_shipped_toml_describes_itself_in_one_line(kind):
    for name in catalogue.names(kind):
        description = load(kind, name).description
        assert description
        assert "\n" not in description


def test_set_overrides_the_benchmark_which_overrides_the_method(tmp_path: Path):
    method = tmp_path / "mine.toml"
    method.write_text("hidden = [7]\nepochs = 3\nbatch_size = 5\n")
    plain, overridden = (plan(DIGITS, [str(method)], [0], s)[0] for s in ({}, {"batch_size": 9}))
    assert (plain.recipe.epochs, plain.recipe.hidden) == (3, [100, 100])
    assert (plain.recipe.batch_size, overridden.recipe.batch_size) == (32, 9)


def test_tuned_settings_of_a_benchmark_come_before_set_and_after_all_else(tmp_path: Path):
    method = tmp_path / "mine.toml"
    method.write_text(
        "epochs = 3\nbatch_size = 5\noptions.a = 1\noptions.b = 1\n"
        f"[tuned.{DIGITS}]\nbatch_size = 7\nlearning_rate = 0.5\noptions.b = 2\n"
    )
    (plain,) = plan(DIGITS, [str(method)], [0])
    (tuned,) = plan(DIGITS, [str(method)], [0], {"learning_rate": 0.1}, tuned=True)
    assert (plain.recipe.batch_size, plain.recipe.options) == (32, {"a": 1, "b": 1})
    assert (tuned.recipe.epochs, tuned.recipe.batch_size, tuned.recipe.learning_rate) == (3, 7, 0.1)
    assert tuned.recipe.options == {"a": 1, "b": 2}


def test_a_method_that_was_not_tuned_on_the_benchmark_is_named(tmp_path: Path):
    method = tmp_path / "mine.toml"
    method.write_text("[tuned.another-benchmark]\nepochs = 3\n")
    for benchmark, name, file in (
        (DIGITS, str(method), "mine"),
        ("permuted-mnist", "naive", "naive"),
    ):
        with pytest.raises(UserError, match=rf"{file}\.toml: was not tuned on {benchmark}"):
            plan(benchmark, [name], [0], tuned=True)


def test_a_file_of_ones_own_without_tuned_tables_is_taken_as_it_stands(tmp_path: Path):
    method = tmp_path / "mine.toml"
    method.write_text("epochs = 3\n")
    assert plan(DIGITS, [str(method)], [0], tuned=True) == plan(DIGITS, [str(method)], [0])


def test_a_method_of_another_track_has_what_was_tuned_for_this_one_in_its_own_file():
    (run,) = plan("retinopathy-hospitals", ["laplace-kronecker"], [0], tuned=True)
    with catalogue.folder("method").joinpath("laplace-kronecker.toml").open("rb") as file:
        table = tomllib.load(file)
    options = table["tuned"]["retinopathy-hospitals"]["options"]
    assert options != table["options"]
    assert run.recipe.options == table["options"] | options


def test_a_misspelt_key_among_the_tuned_ones_is_named(tmp_path: Path):
    method = tmp_path / "mine.toml"
    method.write_text(f"[tuned.{DIGITS}]\nepoch = 3\n")
    with pytest.raises(UserError, match="epoch"):
        plan(DIGITS, [str(method)], [0], tuned=True)


def test_every_shipped_tuned_table_is_valid():
    for track in tracks.names():
        for name in catalogue.names("method", track):
            for benchmark in load("method", name, track).table.get("tuned", {}):
                assert plan(benchmark, [name], [0], tuned=True)


def test_options_of_method_benchmark_and_command_line_are_merged(tmp_path: Path):
    method, benchmark = tmp_path / "mine.toml", tmp_path / "bench.toml"
    method.write_text("[options]\na = 1\nb = 1\nc = 1\n")
    stream = '[stream]\ndataset = "digits"\n'
    benchmark.write_text(f"{stream}[recipe.options]\nb = 2\nc = 2\n")
    (run,) = plan(str(benchmark), [str(method)], [0], {"options.c": 3})
    assert run.recipe.options == {"a": 1, "b": 2, "c": 3}


def test_settings_reach_the_stream_and_what_is_evaluated():
    (run,) = plan(DIGITS, ["naive"], [0], {"stream.tasks": 2, "evaluate_on": "validation"})
    assert (run.stream.tasks, run.evaluate_on) == (2, "validation")


def test_a_method_named_twice_is_run_once():
    shipped = str(catalogue.folder("method") / "naive.toml")
    assert len(plan(DIGITS, ["naive", "naive", shipped], [0])) == 1


def test_two_methods_of_one_name_are_refused_because_their_results_would_mix(tmp_path: Path):
    mine = tmp_path / "naive.toml"
    mine.write_text("epochs = 3\n")
    with pytest.raises(UserError, match=r"naive\.toml and .*naive\.toml: two methods of one name"):
        plan(DIGITS, ["naive", str(mine)], [0])


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("epochs=40", "epochs", 40),
        ("learning_rate=1e-3", "learning_rate", 1e-3),
        ("hidden=[8, 8]", "hidden", [8, 8]),
        ("posterior=radial", "posterior", "radial"),
        ('posterior="radial"', "posterior", "radial"),
        ("drop_last=false", "drop_last", False),
        (" epochs = 40", "epochs", 40),
        ("options.path=a=b", "options.path", "a=b"),
        ("epochs=", "epochs", ""),
        ("epochs=4\nseed=5", "epochs", "4\nseed=5"),
    ],
)
def test_a_setting_is_a_toml_value_or_else_a_plain_string(text, key, value):
    assert parse_setting(text) == (key, value)


@pytest.mark.parametrize("value", ["True", "False", " False"])
def test_a_boolean_in_pythons_spelling_is_refused(value):
    # As a string, either is true.
    with pytest.raises(UserError) as caught:
        parse_setting(f"options.x={value}")
    assert caught.value.key == f"--set 'options.x={value}'"


def planned(text: str) -> Run | UserError:
    try:
        return plan(DIGITS, ["naive"], [0], dict([parse_setting(text)]))[0]
    except UserError as error:
        return error


KNOWN_KEYS = (
    "epochs hidden posterior learning_rate initial_noise drop_last options options.x stream "
    "stream. stream.tasks stream.class_order evaluate_on seed"
)
KEYS = st.one_of(st.text(), st.sampled_from(KNOWN_KEYS.split()))
VALUES = st.one_of(
    st.text(alphabet=st.characters(codec=None, categories=None)),
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(["[1, 2]", "{a = 1}", "1979-05-27", "[[[", "'''", "0x1F", "true", "nan"]),
)


@given(KEYS, VALUES)
@example("epochs", "9" * 5000)
@example("options.x", "\udcff")
@example("options.\udcff", "1")
@example("options.x", "{a = [1979-05-27T07:32:00Z, nan]}")
@example("stream", "3")
@example("options", "3")
def test_any_setting_gives_a_spec_that_toml_holds_or_one_line(key, value):
    answer = planned(f"{key}={value}")
    if isinstance(answer, UserError):
        assert len(str(answer).splitlines()) == 1
    else:
        assert tomli_w.dumps(answer.settings()).encode()
        assert len(answer.digest()) == 8


@given(st.text())
@example("epochs")
@example("=")
@example("a\nb")
def test_any_text_after_set_gives_a_spec_or_one_line(text):
    answer = planned(text)
    assert isinstance(answer, Run) or len(str(answer).splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("epoch = 5\n", "unknown key 'epoch'; the nearest known one is 'epochs'"),
        ("description = 'mine'\n", "has no keys: name a method at least"),
        ("", "has no keys: name a method at least"),
        ("options = 1\n", r"options = 1: must be a table, \[options\]"),
        ("epochs\n", "not valid TOML"),
        ("[stream]\ndataset = 'digits'\n[recipes]\n", "unknown key 'recipes'.*nearest.*'recipe'"),
        ("[stream]\ndataset = 'digits'\ntask = 5\n", "unknown key 'stream.task'.*'stream.tasks'"),
        ("[stream]\ndataset = 'digits'\n[recipe]\nepoch = 5\n", "unknown key 'epoch'.*'epochs'"),
        ("kind = 1\n[stream]\ndataset = 'digits'\n", r"'kind' is a .*write it below \[stream\]"),
        ("[stream]\nheads = 'multi'\n", "'stream.dataset' is missing"),
        ("[stream]\ndataset = 'digits'\ntasks.a = 5\n", "stream.tasks = {'a': 5}: input should"),
        ("stream = 5\n", r"'stream' must be a table, \[stream\]"),
        ("[stream]\ndataset = 'digits'\n[recipe]\noptions = 1\n", "options = 1: must be a table"),
        ("[stream\n", "not valid TOML"),
        ("x = " + "9" * 5000, "not valid TOML"),
        ("evaluate_on = 'train'\n[stream]\ndataset = 'digits'\n", "evaluate_on = 'train'"),
    ],
)
def test_a_faulty_file_is_named_with_its_fault(tmp_path: Path, content, message):
    """The file is a benchmark if it has a stream, else a method."""
    path = tmp_path / "mine.toml"
    path.write_text(content)
    of_benchmark = "stream" in content or "x = " in content
    pair = (str(path), "naive") if of_benchmark else (DIGITS, str(path))
    with pytest.raises(UserError, match=message) as caught:
        plan(pair[0], [pair[1]], [0])
    assert "mine" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_is_missing_a_folder_or_not_text_is_named(tmp_path: Path):
    folder, binary = tmp_path / "folder.toml", tmp_path / "binary.toml"
    folder.mkdir()
    binary.write_bytes(b"\xff\xfe")
    cases = ((tmp_path / "no.toml", "no such file"), (folder, "be read"), (binary, "be read"))
    for path, message in cases:
        with pytest.raises(UserError, match=message) as caught:
            load("method", str(path))
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["..toml", "...toml"])
def test_a_file_whose_name_would_be_that_of_a_folder_above_is_refused(tmp_path: Path, name):
    (tmp_path / name).write_text("")
    with pytest.raises(UserError, match="the file's name is no name; rename it"):
        plan(DIGITS, [str(tmp_path / name)], [0])


def test_a_method_without_a_toml_of_a_track_is_trained_by_the_tracks_own_defaults():
    shared = load("method", "vogn")
    (run,) = plan("retinopathy-synthetic", ["vogn"], [0])
    assert run.recipe.strategy == "vogn"
    assert run.recipe.options == shared.recipe.get("options", {})
    fresh = type(run.recipe)(strategy="vogn", posterior="none")
    assert run.recipe.epochs == fresh.epochs != shared.recipe["epochs"]


@pytest.mark.parametrize(
    ("method", "key", "meant"),
    [
        ("naive", "tasks", "stream.tasks"),
        ("naive", "epoch", "epochs"),
        ("bayes-linear", "unitz", "options.units"),
    ],
)
def test_an_unknown_key_is_compared_with_those_of_inner_tables_too(method, key, meant):
    with pytest.raises(UserError, match=f"{key!r}; the nearest known one is '{meant}'"):
        planning.plan("split-digits-multi-head", [method], [0], {key: 2})


@pytest.mark.parametrize("link", [{"parents": "a"}, {"parent": 1}, 3])
def test_a_wrong_key_of_a_table_in_a_list_is_named(link):
    (run,) = plan(DIGITS, ["naive"], [0])
    with refuses("updates", "[0]"):
        tracks.find("continual").validated({**run.settings(), "updates": [link]})


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_is_no_part_of_a_recipe(tmp_path, mark):
    (tmp_path / "mine.toml").write_text(mark + 'strategy = "naive"\r\n', encoding="utf-8")
    assert load("method", str(tmp_path / "mine.toml")).table == {"strategy": "naive"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('strategy = "naive"'.encode("utf-16"), "write it in UTF-8"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a" + b".a" * 5000 + b" = 1", "nested too deeply"),
        (b"\0", "not valid TOML"),
    ],
)
def test_a_file_that_is_no_plain_toml_is_one_line(tmp_path, content, message):
    (tmp_path / "mine.toml").write_bytes(content)
    for kind in ("benchmark", "method", "sweep"):
        with pytest.raises(UserError, match=message) as fault:
            load(kind, str(tmp_path / "mine.toml"))
        assert len(str(fault.value)) < 500


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_a_toml_that_is_no_regular_file_is_never_waited_for(tmp_path, make):
    make(tmp_path / "mine.toml")
    with pytest.raises(UserError, match="not a regular file"):
        load("benchmark", str(tmp_path / "mine.toml"))
