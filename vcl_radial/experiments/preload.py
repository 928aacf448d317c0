"""Imported by the server that workers are forked from: what they need, once for all of them."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
from contextlib import suppress

from vcl_radial.experiments.quiet import quiet

_PR_SET_PDEATHSIG = 1

with suppress(OSError, AttributeError):  # the server looks for its parent only after the imports
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
with quiet():
    for module in filter(None, os.environ.pop("VCL_RADIAL_PRELOAD", "").split(",")):
        with suppress(Exception):  # a worker that needs it says so
            importlib.import_module(module)
