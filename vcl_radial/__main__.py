"""`python -m vcl_radial` is `vcl-radial`."""

import sys

from vcl_radial.cli import main

if __name__ == "__main__":
    sys.exit(main())
