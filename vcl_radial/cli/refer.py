"""`vcl-radial refer`: fundus photographs, and which of them to leave to an expert."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import (
    DONE,
    FAILED,
    add_data_dir,
    add_device,
    add_methods,
    add_out,
    add_settings,
    add_tuned,
    count,
    in_words,
    usable_device,
)

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "refer",
        help="retinopathy: train, refer the least certain photographs, score the others",
        description="Train methods on fundus photographs and score them when the photographs that "
        "they are least certain about are referred to an expert. Benchmarks: synthetic draws its "
        "pictures and needs no files; idrid and eyepacs want retinopathy/ in the data folder, and "
        "eyepacs tests on IDRiD too. In synthetic-cameras, eyepacs-idrid and eyepacs-sharpness one "
        "network sees sites one after another, its posterior carried to the prior. Finished runs "
        "are kept; one that was stopped goes on from its last epoch. `torchrun --nproc-per-node N "
        "-m vcl_radial refer ...` shares every batch among N processes, which must see the "
        "same --out folder.",
    )
    parser.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        nargs="?",
        default="synthetic",
        help="synthetic (default), synthetic-cameras, idrid, eyepacs, eyepacs-idrid or "
        "eyepacs-sharpness, or a .toml file",
    )
    add_methods(parser, "of baselines/referral, or .toml files (default: radial mfvi)")
    parser.add_argument(
        "--seeds", metavar="N", type=count, default=1, help="seeds 0 to N-1 (default: 1)"
    )
    add_tuned(parser)
    add_settings(parser, "keys of the recipes, or data.KEY (epochs=20 channels=8 data.size=128)")
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        default=1,
        help="runs at a time, of one thread each (default: 1, with all cores)",
    )
    add_data_dir(parser)
    add_out(parser, "runs/referral")
    add_device(parser)
    parser.set_defaults(command=_refer)


def _refer(options: argparse.Namespace) -> int:
    from vcl_radial.quiet import quiet

    with quiet():
        from vcl_radial.errors import UserError
        from vcl_radial.runs.catalogue import parse_setting
        from vcl_radial.tracks.retinopathy.catalogue import plan
        from vcl_radial.tracks.retinopathy.command import Choices, refer
        from vcl_radial.tracks.retinopathy.prepare import on_data
        from vcl_radial.tracks.retinopathy.processes import joined

    runs = plan(
        options.benchmark,
        options.methods or ["radial", "mfvi"],
        range(options.seeds),
        dict(parse_setting(text) for text in options.settings),
        options.tuned,
    )
    runs = [on_data(run, options.data_dir) for run in runs]
    with joined(usable_device(options.device)) as (processes, device):
        if processes.world > 1 and options.jobs > 1:
            raise UserError("--jobs is for a single process: leave it out under torchrun")
        choices = Choices(
            runs=runs,
            out=options.out,
            data_dir=options.data_dir,
            device=device,
            jobs=options.jobs,
            processes=processes,
            command=in_words("refer", options),
        )
        return FAILED if refer(choices) else DONE
