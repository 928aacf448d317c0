"""Every command that a page shows is one that the command line takes; nothing is trained here."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from doc_pages import DOCS, PAGES, ROOT, blocks, commands, name, write_files

from benchmarks.speed import __main__ as speed
from reports import __main__ as reports
from reports.papers.catalogue import figures, members
from reports.seeds.pruning.track import runs_of
from vcl_radial import cli
from vcl_radial.cli.arguments import parse_setting
from vcl_radial.cli.executors import executor_of
from vcl_radial.conformance import recipe_for
from vcl_radial.errors import VclRadialError
from vcl_radial.runs import catalogue, planning
from vcl_radial.runs.command import check_command_options
from vcl_radial.sweeps import plans as sweeps

PLACEHOLDERS = {"COMMAND": "run", "NAME": "radial-vcl"}
"""What a reader puts in the place of a word in capitals."""


@pytest.fixture
def readers_folder(tmp_path, monkeypatch):
    """A folder with what the root of the repository and the reader's own files hold."""
    for folder in ("baselines", "benchmarks", "reports"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for folder in ("FOLDER", "flowers", "letters"):  # of data, which --data-dir names
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    loaded = set(sys.modules)
    yield tmp_path
    for module in set(sys.modules) - loaded:
        if getattr(sys.modules[module], "__file__", None) == str(tmp_path / f"{module}.py"):
            del sys.modules[module]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_of_a_page_is_understood_with_its_names_and_keys(page, readers_folder):
    write_files(page, readers_folder)
    for arguments in commands(page, readers_folder):
        try:
            _understand([PLACEHOLDERS.get(word, word) for word in arguments])
        except (Exception, SystemExit) as error:
            if not (isinstance(error, SystemExit) and error.code == 0):  # as --help does
                pytest.fail(f"{' '.join(arguments)}\n{error}")


def test_the_commands_of_the_docs_are_found():
    # Were the shell to unroll nothing, the test above would pass on anything.
    readme = {arguments[0] for arguments in commands(ROOT / "README.md", Path.cwd())}
    assert {"run", "check", "sweep", "reports"} <= readme


@pytest.mark.parametrize(
    "command",
    [
        "regress uci",
        "run uci --splits 3",
        "run uci --set data.table_of=yacht",
        "run uci --log tensorbord",
        "run retinopathy-synthetic --lanes 4",
        "report runs/sweeps/tune-radiall",
        "report runs/sweeps/tune-radial --by average_accuracies",
        "sweep tune-radial --seeds 3",
        "reports soap-bubbles",
        "reports soap-bubble --set epochs=20",
        "reports pruning-lenet --method badam",
        "bench step",
        "benchmarks.speed steps",
        "benchmarks.speed step --seeds 3",
    ],
)
def test_a_command_with_a_wrong_name_key_or_option_is_not_understood(command, readers_folder):
    with pytest.raises((VclRadialError, SystemExit, AssertionError)) as error:
        _understand(command.split())
    assert getattr(error.value, "code", 1) != 0


def _understand(command):
    """Parse a command, and plan what it names as far as that needs no data."""
    name, *arguments = command
    if name == "benchmarks.speed":
        speed.parser().parse_args(arguments)
        return
    if name == "reports":
        parser, arguments = reports.parser_for(arguments)
        options = parser.parse_args(arguments)
    else:
        options = cli.parser_for(name).parse_args(command)
    settings = dict(parse_setting(text) for text in getattr(options, "settings", []))
    if name == "run":
        track = catalogue.track_of(catalogue.load("benchmark", options.benchmark))
        methods = dict.fromkeys(existing_recipe(m, track.methods[0]) for m in options.methods)
        runs = planning.plan(options.benchmark, list(methods), [0], settings, options.tuned)
        executor_of(options)
        check_command_options(track, options.benchmark, lanes=options.lanes, device=options.device)
        track.check_runs(runs)
    elif name == "check":
        recipe_for(existing_recipe(options.method, "ewc"), settings).check_method()
    elif name == "sweep":
        sweeps.read(options.sweep, options.trials)
    elif name == "report" and (options.folder.parent.name == "sweeps" or options.by):
        # Its folder has the name of the sweep, shipped or of a file that the page shows.
        sweep = options.folder.name
        (plan, *_) = sweeps.read(sweep if sweep in catalogue.names("sweep") else f"./{sweep}.toml")
        assert options.by is None or options.by in plan.track.objectives, f"no score {options.by}"
    elif getattr(options, "names", None) and (settings or options.methods):
        for figure in members(options.names):
            known = [*getattr(figures()[figure].modules[figure], "RUN_METHODS", ())]
            runs_of(figure, options.methods or known, [0], settings)


def existing_recipe(method, default):
    """The recipe that a page names; the default for a file that the reader has yet to write."""
    return default if method.endswith(".toml") and not Path(method).exists() else method


@pytest.mark.parametrize("page", DOCS, ids=name)
def test_every_toml_of_the_docs_is_a_valid_benchmark_recipe_or_sweep(page, readers_folder):
    write_files(page, readers_folder)
    for number, block in enumerate(b for b in blocks(page) if b.language == "toml"):
        file = Path(block.file or f"block-{number}.toml")
        file.write_text(block.code)
        table = tomllib.loads(block.code)
        if "search" in table:
            sweeps.read(str(file))
        elif {"stream", "track"} & table.keys():
            planning.plan(str(file), [], [0])
        elif not {"project", "tuned"} & table.keys():
            planning.plan("split-digits-multi-head", [str(file)], [0])


@pytest.mark.parametrize("page", DOCS, ids=name)
def test_every_fence_of_the_docs_names_its_language(page):
    unnamed = [block.code for block in blocks(page) if not block.language]
    assert not [code for code in unnamed if re.match(r"(vcl-radial|make|pip|import|from)\b", code)]
