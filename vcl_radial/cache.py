"""Where the suite keeps what can be made or fetched again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """The cache folder: `$XDG_CACHE_HOME/vcl_radial`, else `~/.cache/vcl_radial`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "vcl_radial"
