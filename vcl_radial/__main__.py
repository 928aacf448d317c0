"""The command `vcl-radial`, also as `python -m vcl_radial`."""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # Python searches the current folder first, where any file may hide a module. Here it is
    # searched last if it holds the package, else not at all.
    folder = sys.path.pop(0)
    sys.path += [folder] * (__file__ == os.path.join(folder, "vcl_radial", "__main__.py"))  # noqa: PTH118


def main() -> int:
    """Run the command line; Ctrl-C during its import ends it silently with exit code 130."""
    try:
        from vcl_radial.cli import main as command_line

        return command_line()
    except KeyboardInterrupt:
        return 130  # as `vcl_radial.cli.arguments.INTERRUPTED`
    except Exception:
        import traceback

        from vcl_radial.errors import visible_lines

        sys.stderr.write(visible_lines(traceback.format_exc()))
        return 1


if __name__ == "__main__":
    sys.exit(main())
