import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vcl_radial import __version__
from vcl_radial.cli import MOVED
from vcl_radial.data.data_files import DATA_VARIABLE
from vcl_radial.runs import catalogue

DIGITS = "split-digits-multi-head"
TINY = ["--set", "epochs=1", "hidden=[8]", "eval_samples=2"]


def run(*arguments: str, jobs: str = "1") -> list[str]:
    return ["run", DIGITS, "--jobs", jobs, "--device", "cpu", *arguments]


def test_a_comparison_ends_with_a_table_and_the_paths_of_pictures_that_exist(command):
    code, out, err = command(*run("--method", "radial-vcl", "naive", "--seeds", "2", *TINY))
    assert (code, err) == (0, [])
    assert f"{DIGITS}: 4 runs to do, 1 at a time" in out
    assert "accuracy (%)" in out
    pictures = [Path(word) for word in out.split() if word.endswith(".png")]
    assert {path.stem for path in pictures} == {
        *("final-model", "accuracy-over-tasks", "layers"),
        *("heatmap-naive", "heatmap-radial-vcl", "heatmaps"),
    }
    assert all(path.is_file() and path.with_suffix(".svg").is_file() for path in pictures)
    assert len(list(Path("runs").glob(f"{DIGITS}/*/seed-*/done"))) == 4

    code, out, err = command(*run("--method", "radial-vcl", "naive", "--seeds", "2", *TINY))
    assert (code, err) == (0, [])
    assert "all 4 runs were finished before" in out

    code, again, _ = command("report", "runs", "--to", "elsewhere")
    assert code == 0
    assert out.split("\n\n")[1] == again.split("\n\n")[0].strip("\n")
    assert Path("elsewhere", DIGITS, "heatmaps.png").is_file()


def test_seeds_may_start_anywhere(command):
    code, _, err = command(*run("--method", "naive", "--seeds", "100-101", *TINY))
    assert (code, err) == (0, [])
    folders = sorted(Path("runs").glob(f"{DIGITS}/naive/seed-*"))
    assert [path.name.split("-")[1] for path in folders] == ["100", "101"]
    assert "--seeds 100-101" in Path("runs", "report", f"{DIGITS}.html").read_text()


def test_an_output_without_arrows_and_a_folder_of_odd_bytes_end_no_command(command, monkeypatch):
    out = os.fsdecode(b"caf\xe9")
    latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", latin)
    code, _, err = command(*run("--method", "naive", "--out", out, *TINY))
    assert (code, err) == (0, [])
    latin.flush()
    printed = latin.buffer.getvalue().decode("latin-1")
    assert "(%) \\u2191" in printed
    page = Path(out, "report", f"{DIGITS}.html")
    assert f"all of it on one page: caf\\udce9/report/{page.name}" in printed
    assert r"caf\udce9" in page.read_text(encoding="utf-8")


def test_a_file_whose_name_is_not_utf8_is_refused_before_the_work(command):
    name = os.fsdecode(b"m\xe9.toml")
    Path(name).write_text('strategy = "naive"\nposterior = "none"\n')
    code, _, err = command(*run("--method", name))
    line = r"vcl-radial: m\udce9.toml: the file's name is not valid UTF-8; rename it"
    assert (code, err) == (1, [line])
    assert not Path("runs").exists()


def test_the_methods_compared_unless_named_are_radial_and_gaussian(command, no_report):
    code, out, _ = command(*run(*TINY))
    assert code == 0
    assert "radial-vcl seed 0" in out
    assert "gaussian-vcl seed 0" in out
    assert "2 runs to do" in out


def test_a_diverged_run_is_told_of_while_the_others_finish(command):
    Path("wild.toml").write_text(
        'strategy = "naive"\nposterior = "none"\noptimizer = "sgd"\nlearning_rate = 1e30\n'
    )
    arguments = run("--method", "wild.toml", "naive", "--seeds", "2", *TINY)
    code, out, err = command(*arguments)
    assert code == 1
    assert err[0].startswith("vcl-radial: wild seed 0, wild seed 1: the loss became nan in epoch 1")
    assert "task 1" in err[0]
    assert len(err) == 1
    assert "wild seed 0   FAILED  [1 of 4]" in out
    assert Path("runs", "report", DIGITS, "heatmap-naive.png").is_file()
    assert not Path("runs", "report", DIGITS, "heatmap-wild.png").exists()
    # What this command has not said, that of one over the same folder says: why two are not in it.
    failures = sorted(str(path.parent) for path in Path("runs").rglob("failed.txt"))
    assert len(failures) == 2
    page = Path("runs", "report", f"{DIGITS}.html").read_text()
    for later in (run("--method", "naive", "--seeds", "2", *TINY), ("report", "runs")):
        code, _, err = command(*later)
        assert code == 0
        for line, folder in zip(err, failures, strict=True):
            assert line.startswith(f"passed over: {folder}: failed: the loss became nan in epoch 1")
            assert f"{folder}: failed" in page


@pytest.mark.slow
def test_runs_that_their_report_passes_over_are_a_failure(command):
    def code_of(method, *settings, epochs=1):
        tiny = [f"epochs={epochs}" if word == "epochs=1" else word for word in TINY]
        code, _, err = command(*run("--method", method, *tiny, *settings))
        return code, [line for line in err if "occurs twice" in line]

    # The third is named as the second is told from the first, and so their tables do not fit.
    Path("naive (epochs=2).toml").write_text(catalogue.load("method", "naive").path.read_text())
    for method, epochs in (("naive", 1), ("naive", 2)):
        assert code_of(method, epochs=epochs) == (0, [])
    assert code_of("naive", "evaluate_on=validation") == (0, [])
    code, (line,) = code_of("naive (epochs=2).toml", epochs=2)
    assert code == 1
    assert line.startswith(f"passed over: {DIGITS}: ")
    # The validation data, which are shown, are complete.
    code, (line,) = code_of("naive", "evaluate_on=validation")
    assert code == 0


def test_ctrl_c_says_how_to_go_on(command, monkeypatch, no_report):
    from vcl_radial.runs.progress import Progress

    original = Progress.show

    def interrupted(self, run, step):
        original(self, run, step)
        if (step.done, step.score is None) == (2, False):
            raise KeyboardInterrupt

    arguments = run("--method", "naive", *TINY)
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "show", interrupted)
        code, _, err = command(*arguments)
    assert code == 130
    assert err == ["vcl-radial: stopped; the same command resumes"]
    code, out, err = command(*arguments)
    assert (code, err) == (0, [])
    assert "resumes after task 2 of 5" in out


def test_the_list_names_every_shipped_benchmark_and_method(command):
    code, out, err = command("list")
    assert (code, err) == (0, [])
    root = Path(__file__).parents[1]
    sweeps = root.glob("benchmarks/sweeps/*.toml")
    for path in (*root.glob("benchmarks/*.toml"), *sweeps, *root.glob("baselines/**/*.toml")):
        assert f"  {path.stem} " in out


def test_the_version_is_that_of_the_package(command):
    assert command("--version") == (0, f"vcl-radial {__version__}\n", [])


LIGHT = """
import json, sys
from vcl_radial.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        assert main(arguments) == 0
    except SystemExit as end:
        assert end.code == 0
    heavy = {"torch", "avalanche", "matplotlib", "pandas", "sklearn"} & set(sys.modules)
    assert not heavy, (arguments, heavy)
"""
HELP = ("run", "check", "predict", "features", "export", "card")
QUICK = [["--help"], ["list"], *([command, "--help"] for command in HELP), ["--version"]]
AT_ONCE = [
    (["run", "no-such"], "unknown benchmark 'no-such'; the nearest is "),
    (["run", "sy\vn"], "unknown benchmark 'sy\\x0bn'"),
    (["run", "no.toml"], "no.toml: there is no such file"),
    (["run", "retinopathy-aptos", "--data-dir", "."], ".: holds no labels.csv or train.csv"),
    (run("--method", "radial"), "unknown method 'radial'; the nearest is 'radial-vcl'"),
    (run("--method", "no.toml"), "no.toml: there is no such file"),
    (run("--method", "beside.toml"), "cannot import 'nowhere'"),
    (run("--method", "broken.toml"), "cannot import 'no': "),
    (run("--set", "options.gama=1", "--method", "ewc"), "unknown option 'gama'"),
    (
        run("--set", "options.memory=5"),
        "unknown option 'memory' of strategy = 'vcl': its only option is 'restart'",
    ),
    (run("--address", "1.2.3.4:5"), "need a Ray cluster: add --executor ray"),
    (run("--set", "strategy=vlc"), "strategy = 'vlc' is not known: the nearest is 'vcl'"),
    (run("--set", "epoch=5"), "unknown key 'epoch'; the nearest known one is 'epochs'"),
    (run("--set", "stream=3"), "stream: is a table; name one key of it, as in stream.KEY"),
    (run("--set", "epochs"), "--set 'epochs': write key=value"),
    (run("--set", "epochs=0"), "epochs = 0: input should be greater than or equal to 1"),
    (run("--set", "learning_rate=nan"), "learning_rate = nan: input should be a finite"),
    (run("--set", "posterior=foo"), "posterior = 'foo' is not known: choose from "),
    (
        run("--set", "posterior=gaussian", "--method", "ewc"),
        "strategy = 'ewc' is for posterior = 'none': set that",
    ),
    (
        run("--set", "posterior=none", "--method", "radial-vcl"),
        "'radial-low-rank' or 'rdp': set one of them",
    ),
    (
        ["run", "diabetes", "--set", "posterior=none", "--method", "radial-vcl"],
        "'radial-low-rank' or 'rdp': set one of them",
    ),
    (
        ["run", "retinopathy-synthetic", "--set", "posterior=radial", "--method", "curvature-vcl"],
        "strategy = 'curvature_vcl' is for posterior = 'low-rank': set that",
    ),
    (run("--set", "stream.validation=1.5"), "stream.validation = 1.5: input should be less"),
    (run("--set", "stream.tasks=7"), "tasks = 7 does not divide the 10 classes: use one of"),
    (run("--set", "stream.class_order=[0, 0]"), "class_order = [0, 0] must hold each class"),
    (run("--set", "hidden=[]"), "hidden = []: heads of several tasks share a layer"),
    (run("--set", "hidden=[8, 0]"), "hidden[1] = 0: input should be greater than or equal"),
    (run("--set", "batch_size=5000"), "batch_size = 5000 is more than the"),
    (run("--out", "no.py"), "no.py: cannot be written: File exists; free space or choose"),
    (run("--out", "no.py/below"), "no.py/below: cannot be written: Not a directory; free space or"),
    (
        run("--data-dir", "empty", "--set", "stream.dataset=mnist"),
        "lacks train-images-idx3-ubyte[.gz]",
    ),
    (run("--set", "stream.dataset=idx-folder"), "needs a data folder: name the folder"),
    (
        [
            "run",
            "image-folder-multi-head",
            "--data-dir",
            "images",
            "--set",
            "stream.image_size=1000000",
        ],
        "images: 4 images of 1000000x1000000 pixels need",
    ),
    (
        ["run", "retinopathy-synthetic", "--set", "data.validation=0.7", "data.test=0.4"],
        "data.validation = 0.7 and data.test = 0.4 leave no share to train on: lower one of them",
    ),
    (["run", "broken.toml"], "broken.toml: is a method, not a benchmark: `vcl-radial run BE"),
    (
        ["run", "misspelt.toml"],
        "misspelt.toml: is a sweep, not a benchmark: `vcl-radial sweep ",
    ),
    (["run", "ewc"], "ewc: is a method, not a benchmark: `vcl-radial run BENCHMARK --method ewc`"),
    (run("--method", DIGITS), f"is a benchmark, not a method: `vcl-radial run {DIGITS}`"),
    (run("--method", "uniform"), "'uniform' is a method of bandits, and this benchmark"),
    (["run", "uci", "--method", "texture"], "'texture' is a method of retinopathy, and"),
    (run("--set", "steps=3"), "unknown key 'steps'; the nearest known one is 'epochs'"),
    (["run", "retinopathy-synthetic", "--set", "steps=3"], "the nearest known one is 'epochs'"),
    (["sweep", "broken.toml"], "is a method, not a sweep: `vcl-radial run BENCHMARK --method bro"),
    (["report", "nowhere"], "nowhere: there is no such folder"),
    (["report", "broken.toml"], "broken.toml: is a file; give the folder of runs"),
    (["report", "."], "holds no finished run; give a folder that was given to --out"),
    (["check", DIGITS], f"is a benchmark, not a method: `vcl-radial run {DIGITS}`"),
    (
        ["check", "silhouette"],
        "'silhouette' is a method of retinopathy, and a check takes those of continual",
    ),
    (["check", "radial"], "unknown method 'radial'; the nearest is 'radial-vcl'"),
    (["check", "no.toml"], "no.toml: there is no such file"),
    (["check", "nowhere:Mine"], "cannot import 'nowhere': No module named 'nowhere'"),
    (["check", "broken.toml"], "cannot import 'no'"),
    (["check", "naive", "--set", "options.gama=1"], "unknown option 'gama'"),
    (["check", "naive", "--set", "epoch=3"], "unknown key 'epoch'; the nearest known one is"),
    (["check", "naive", "--set", "stream.tasks=2"], "stream.tasks: a check brings its own"),
    (["predict", "nowhere", "digits", "--to", "p.csv"], "nowhere: holds no model"),
    (["card", "empty"], "empty: holds no model"),
    (["export", "empty", "--to", "m.onnx"], "empty: holds no model"),
    (["sweep", "no-such"], "unknown sweep 'no-such'; the nearest is "),
    (["sweep", "misspelt.toml"], "unknown option 'gama'"),
]


def test_quick_answers_import_nothing_heavy():
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    answer = subprocess.run(
        [sys.executable, "-c", LIGHT, json.dumps(QUICK)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert answer.returncode == 0, answer.stderr


def test_what_is_wrong_is_one_line(command):
    Path("no.py").write_text("class Mine(:")
    Path("empty").mkdir()
    for number in range(4):
        image = Path("images", f"class-{number % 2}", f"{number}.png")
        image.parent.mkdir(parents=True, exist_ok=True)
        image.touch()
    for name, target in (("beside", "nowhere:Mine"), ("broken", "no:Mine")):
        Path(f"{name}.toml").write_text(f'strategy = "{target}"\nposterior = "none"\n')
    Path("misspelt.toml").write_text(
        f'kind = "grid"\nbenchmark = "{DIGITS}"\nmethod = "ewc"\n'
        "[search]\n'options.gama' = [0.5, 1.0]\n"
    )
    for arguments, message in AT_ONCE:
        code, _, err = command(*arguments)
        assert (code, len(err)) == (1, 1), (arguments, err)
        assert err[0].startswith("vcl-radial: "), arguments
        assert message in err[0], arguments


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["rum"], "invalid choice: 'rum'"),
        (["run"], "required: BENCHMARK; put it before --method"),
        (["run", "--method", "naive", DIGITS], "BENCHMARK; put it before --method, --set, --log: "),
        (["report"], "required: FOLDER"),
        (["check"], "required: PACKAGE.MODULE:CLASS|FILE|NAME"),
        (run("--seeds", "0"), "--seeds: '0' is not a whole number of at least 1"),
        (run("--seeds", "x"), "--seeds: 'x' is not a whole number of at least 1"),
        (run("--seeds", "9-7"), "--seeds: '9-7' is no range of seeds: write the first and the"),
        (run("--seeds", "1.5"), "--seeds: '1.5' is not a whole number of at least 1"),
        (run("--seeds", "99999999999"), "--seeds: 99999999999 is more than 100000"),
        (run("--seeds", "20240601"), "20240601 is the number of seeds; write 20240601-20240601"),
        (run("--data-dir", "no"), "--data-dir: no: is not a folder: create it or name another"),
        (run("--data-dir", ""), "--data-dir: is empty: name a folder, `.` for this one"),
        (["report", ""], "FOLDER: is empty: name a folder"),
        (run(jobs="0"), "--jobs: '0' is not a whole number of at least 1"),
        (run(jobs="-1"), "--jobs: '-1' is not a whole number of at least 1"),
        (run("--device", "tpu"), "--device: invalid choice: 'tpu'"),
        (run("--epochs", "5"), "unrecognized arguments: --epochs 5"),
        (run("--method"), "--method: expected at least one argument"),
    ],
)
def test_misuse_is_one_line_that_names_the_option(command, arguments, named):
    code, out, err = command(*arguments)
    assert (code, out, len(err)) == (2, "", 1)
    assert named in err[0]
    assert "--help" in err[0]


def test_a_data_folder_of_the_environment_that_is_not_there_is_named(command, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, "nowhere-else")
    code, _, err = command("run", "split-fashion-multi-head", "--device", "cpu", "--jobs", "1")
    assert (code, len(err)) == (1, 1)
    assert f"nowhere-else: the data folder of {DATA_VARIABLE} is not a folder" in err[0]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none_is_refused_and_auto_is_the_cpu(command, no_report):
    code, _, err = command("run", DIGITS, "--device", "cuda")
    assert (code, len(err)) == (1, 1)
    assert "device = 'cuda' needs a CUDA device" in err[0]
    assert command("run", DIGITS, "--jobs", "1", "--method", "naive", *TINY)[0] == 0


OWN_METHOD = """
from vcl_radial.integrations.avalanche import ContinualStrategy
class Quiet(ContinualStrategy):
    pass
class Forgetful(ContinualStrategy):
    def penalty(self):
        return 0.0
class Impossible(ContinualStrategy):
    def __init__(self, memory, **settings):
        super().__init__(**settings)
"""


@pytest.fixture
def own_method(command, monkeypatch):
    """A module of the user's own in the current folder."""
    Path("own_methods.py").write_text(OWN_METHOD)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield
    sys.modules.pop("own_methods", None)


def test_a_check_of_a_method_in_order_is_one_line_for_each_check(command, own_method):
    code, out, err = command("check", "own_methods:Quiet", "--set", "posterior=none")
    assert (code, err) == (0, [])
    *lines, last = out.splitlines()
    assert {line.split()[0] for line in lines} == {"ok", "skipped"}
    skipped = sum(line.startswith("skipped") for line in lines)
    assert last == f"own_methods:Quiet: {len(lines) - skipped} ok, 0 faults, {skipped} skipped"


def test_a_check_that_finds_a_fault_says_so_and_fails(command, own_method):
    code, out, err = command("check", "own_methods:Forgetful", "--set", "posterior=none")
    assert (code, err) == (1, [])
    (fault,) = (line for line in out.splitlines() if line.startswith("FAULT"))
    assert fault.split()[1] == "runs:"
    assert "memoryless = True" in fault
    assert out.splitlines()[-1].startswith("own_methods:Forgetful: 1 ok, 1 fault, ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["own_methods:Louder"], "'own_methods' has no 'Louder'"),
        (["own_methods:Impossible"], "memory"),
    ],
)
def test_what_cannot_be_checked_is_one_line(command, own_method, arguments, named):
    code, out, err = command("check", *arguments)
    assert (code, out, len(err)) == (1, "", 1), err
    assert err[0].startswith("vcl-radial: ")
    assert named in err[0]


@pytest.mark.parametrize("name", MOVED)
def test_a_command_that_moved_names_its_new_form(command, name):
    code, _, (line,) = command(name, "anything", "--quick")
    assert code == 2
    assert MOVED[name] in line


def test_a_missing_list_of_words_is_named(capsys):
    from reports.__main__ import main as reports

    with pytest.raises(SystemExit) as ended:
        reports(["pages", "--check"])
    assert ended.value.code == 2
    assert "FOLDER|FILE" in capsys.readouterr().err
