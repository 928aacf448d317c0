"""The command line: `vcl-radial run | list | report | check | bench`. Heavy imports are late."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from vcl_radial import __version__
from vcl_radial.bench import SECTIONS
from vcl_radial.errors import UserError, VclRadialError

MAIN_METHODS = ("radial-vcl", "gaussian-vcl")
"""What `run` compares when no method is named, and what a report shows first."""

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, not the whole usage."""
        self.exit(MISUSED, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0 done, 1 failed, 2 misused."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code: int = options.command(options)
    except VclRadialError as error:
        print(f"vcl-radial: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(
            "vcl-radial: stopped; the same command goes on from the last finished tasks",
            file=sys.stderr,
        )
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as in `vcl-radial list | head`
        sys.stderr.close()
        return FAILED
    return code


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="vcl-radial",
        description="Benchmarks of variational continual learning: radial against Gaussian "
        "posteriors, and any method of your own.",
    )
    parser.add_argument("--version", action="version", version=f"vcl-radial {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    run = commands.add_parser(
        "run",
        help="run methods on a benchmark and draw its heatmaps",
        description="Run methods on a benchmark. Finished runs are kept, interrupted ones go on "
        "from their last finished task, and the report is drawn anew at the end.",
    )
    run.add_argument("benchmark", metavar="BENCHMARK", help="a name of `list`, or a .toml file")
    run.add_argument(
        "--method",
        dest="methods",
        metavar="NAME|FILE",
        nargs="+",
        action="extend",
        help="names of `list`, or .toml files (default: radial-vcl gaussian-vcl)",
    )
    run.add_argument(
        "--seeds", metavar="N", type=_count, default=1, help="seeds 0 to N-1 (default: 1)"
    )
    run.add_argument(
        "--jobs",
        metavar="N",
        type=_count,
        help="runs at a time, one thread each (default: one per core; on a GPU 1)",
    )
    run.add_argument(
        "--lanes",
        metavar="N",
        type=_count,
        help="runs of one shape, as seeds are, that train as one program (default: 1; on a GPU 64)",
    )
    run.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="override keys of the recipe (epochs=40) or of the stream (stream.tasks=2)",
    )
    run.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="where the data lie (default: $VCL_RADIAL_DATA, else downloaded once)",
    )
    run.add_argument("--out", metavar="DIR", type=Path, default=Path("runs"), help="default: runs")
    run.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: auto"
    )
    run.set_defaults(command=_run)

    listing = commands.add_parser("list", help="list the benchmarks and methods")
    listing.set_defaults(command=_list)

    report = commands.add_parser(
        "report",
        help="tables and heatmaps of finished runs",
        description="Draw the tables and heatmaps of all finished runs below a folder.",
    )
    report.add_argument("folder", metavar="DIR", type=Path, help="a folder given to --out")
    report.add_argument(
        "--to", metavar="DIR", type=Path, help="where to write (default: DIR/report)"
    )
    report.add_argument(
        "--first",
        metavar="METHOD",
        nargs="+",
        default=MAIN_METHODS,
        help="methods to show first (default: radial-vcl gaussian-vcl)",
    )
    report.set_defaults(command=_report)

    check = commands.add_parser(
        "check",
        help="check that a method keeps what all methods keep",
        description="Train a method on a few digits, in under a minute, and say in words what is "
        "wrong with it: does it run, learn, consolidate, leave the heads of other tasks alone, go "
        "on from a checkpoint to the same bits, and keep its penalty on the scale of the others?",
    )
    check.add_argument(
        "method",
        metavar="PACKAGE.MODULE:CLASS|FILE|NAME",
        help="a class of your own, the .toml file of a recipe, or a name of `list`",
    )
    check.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="override keys of the recipe (posterior=none, options.strength=3)",
    )
    check.set_defaults(command=_check)

    bench = commands.add_parser(
        "bench",
        help="measure speed and memory",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure speed and memory on one thread or a GPU. Sections (default: all):\n"
        + "\n".join(f"  {name:8}{words}" for name, words in SECTIONS.items()),
    )
    bench.add_argument("sections", metavar="SECTION", nargs="*", type=_section)
    bench.add_argument(
        "--repeats", metavar="N", type=_count, help="rounds that count (default: 7; quick: 2)"
    )
    bench.add_argument("--quick", action="store_true", help="a coarse look in about a minute")
    bench.add_argument(
        "--to",
        metavar="DIR",
        type=Path,
        default=Path("reports/speed"),
        help="where to write (default: reports/speed)",
    )
    bench.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="where Fashion-MNIST lies (default: $VCL_RADIAL_DATA, else what was downloaded; "
        "random images where it is nowhere)",
    )
    bench.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    bench.set_defaults(command=_bench)
    return parser


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def _section(text: str) -> str:
    if text not in SECTIONS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(SECTIONS)}")
    return text


def _run(options: argparse.Namespace) -> int:
    from vcl_radial.experiments.catalogue import parse_setting, plan

    methods = options.methods or MAIN_METHODS
    settings = dict(parse_setting(text) for text in options.settings)
    runs = plan(options.benchmark, methods, range(options.seeds), settings)

    from vcl_radial.experiments.execute import Place
    from vcl_radial.experiments.report import write_report
    from vcl_radial.experiments.runner import perform

    place = Place(options.out, options.data_dir, _device(options.device))
    outcomes = perform(runs, place, options.jobs, options.lanes)
    faults: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.fault is not None:
            name = f"{outcome.run.method} seed {outcome.run.seed}"
            faults.setdefault(outcome.fault, []).append(name)
    for fault, names in faults.items():
        print(f"vcl-radial: {', '.join(names)}: {fault}", file=sys.stderr)
    if len(outcomes) == len(runs) and len(outcomes) == sum(map(len, faults.values())):
        return FAILED
    order = list(dict.fromkeys(run.method for run in runs))
    write_report(options.out, options.out / "report", runs[0].benchmark, order)
    return FAILED if faults else DONE


def _device(choice: str) -> str:
    if choice == "cpu":
        return choice
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if choice == "cuda":
        raise UserError("--device cuda: PyTorch finds no CUDA device here; use --device cpu")
    return "cpu"


def _list(options: argparse.Namespace) -> int:
    from vcl_radial.experiments import catalogue

    for kind, title in (("benchmark", "Benchmarks"), ("method", "Methods")):
        names = catalogue.names(kind)
        width = max(map(len, names))
        print(f"{title}:")
        for name in names:
            print(f"  {name:{width}}  {catalogue.load(kind, name).description}")
    return DONE


def _report(options: argparse.Namespace) -> int:
    from vcl_radial.experiments.report import write_report

    write_report(options.folder, options.to or options.folder / "report", first=options.first)
    return DONE


def _check(options: argparse.Namespace) -> int:
    import warnings

    with warnings.catch_warnings():
        # Other people's packages warn as they are imported: nothing a user of ours can mend.
        warnings.filterwarnings("ignore", module=r"(?!vcl_radial).*")
        import torch

        from vcl_radial.conformance import check, recipe_for
        from vcl_radial.experiments.catalogue import parse_setting

    torch.set_num_threads(1)
    recipe = recipe_for(options.method, dict(parse_setting(text) for text in options.settings))
    counts = {"ok": 0, "fault": 0, "skipped": 0}
    try:
        for verdict in check(recipe):
            print(verdict, flush=True)
            counts[verdict.outcome] += 1
    except KeyboardInterrupt:
        print("vcl-radial: stopped", file=sys.stderr)
        return INTERRUPTED
    faults = f"{counts['fault']} fault{'' if counts['fault'] == 1 else 's'}"
    print(f"{options.method}: {counts['ok']} ok, {faults}, {counts['skipped']} skipped")
    return FAILED if counts["fault"] else DONE


def _bench(options: argparse.Namespace) -> int:
    device = _device(options.device)

    from vcl_radial.bench.command import bench

    try:
        bench(
            list(dict.fromkeys(options.sections)) or list(SECTIONS),
            options.to,
            repeats=options.repeats,
            quick=options.quick,
            data_dir=options.data_dir,
            device=device,
        )
    except KeyboardInterrupt:
        print("vcl-radial: stopped; nothing was written", file=sys.stderr)
        return INTERRUPTED
    return DONE


if __name__ == "__main__":
    sys.exit(main())
