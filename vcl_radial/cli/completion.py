"""`vcl-radial completion`: print the script by which a shell completes commands, options, names."""

from __future__ import annotations

import argparse
from typing import Any

from vcl_radial.cli.arguments import DONE
from vcl_radial.errors import UserError

NAMES = {"benchmark": "benchmark", "methods": "method", "method": "method", "sweep": "sweep"}
"""The arguments that take a shipped name, each with its kind."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Print a shell's completion script, for example: vcl-radial completion bash > "
        "~/.local/share/bash-completion/completions/vcl-radial"
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")
    parser.set_defaults(command=_completion)


def _completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise UserError("needs shtab: pip install 'vcl-radial[completion]'") from None
    from vcl_radial.cli import COMMANDS, parser_for
    from vcl_radial.cli.about import names

    words: dict[str, list[str]] = {kind: [] for kind in NAMES.values()}
    for name, kind in names().items():
        words[kind].append(name)
    parser = parser_for(*COMMANDS)
    for action in _actions(parser):
        if action.dest in NAMES:
            function = f"_vcl_radial_{NAMES[action.dest]}"
            action.complete = {"bash": function, "zsh": function}
        elif action.metavar in ("FOLDER", "DIR", "FILE"):
            folder = action.metavar != "FILE"
            action.complete = shtab.DIRECTORY if folder else shtab.FILE
    bodies = {
        "bash": 'compgen -W "{}" -- "$1"; compgen -f -- "$1"',
        "zsh": "compadd -- {}; _files",
    }
    preamble: Any = {  # shtab's hint says str, and its documentation a string for each shell
        shell: "\n".join(
            f"_vcl_radial_{kind}() {{ {body.format(' '.join(known))}; }}"
            for kind, known in words.items()
        )
        for shell, body in bodies.items()
    }
    print(shtab.complete(parser, options.shell, preamble=preamble))
    return DONE


def _actions(parser: argparse.ArgumentParser) -> list[Any]:
    """The arguments of a parser and of its commands."""
    result: list[Any] = []
    for action in parser._actions:
        result.append(action)
        if isinstance(action, argparse._SubParsersAction):
            result += [a for command in action.choices.values() for a in _actions(command)]
    return result
