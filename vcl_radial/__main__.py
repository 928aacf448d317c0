"""`vcl-radial`, as a command and as `python -m vcl_radial`."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C while it is imported ends it in silence, with its exit code."""
    try:
        from vcl_radial.cli import main as command_line

        return command_line()
    except KeyboardInterrupt:
        return 130  # as `vcl_radial.cli.arguments.INTERRUPTED`


if __name__ == "__main__":
    sys.exit(main())
