"""What other people's packages warn of is nothing that a user of ours can mend."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, only warnings that this package raises are shown: neither of imports nor of use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(?!vcl_radial).*")
        yield
