"""Imported by the server that workers are forked from: what they need, once for all of them."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import signal
from contextlib import suppress

from vcl_radial.runs.environment import loaded
from vcl_radial.system.quiet import quiet

_PR_SET_PDEATHSIG = 1

parent, _, modules = os.environ.pop("VCL_RADIAL_PRELOAD", "").partition(":")
with suppress(OSError, AttributeError):
    # The server itself looks for its parent only after the imports.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
if parent and os.getppid() != int(parent):  # it has gone before it was asked for
    os._exit(1)
# The collector would look through a million new objects again and again, a fifth of the time.
gc.disable()
with quiet():
    for module in filter(None, modules.split(",")):
        with suppress(Exception):  # a worker that needs it says so
            importlib.import_module(module)
loaded()  # the commit, for all workers
gc.freeze()  # so that workers do not write to the pages that they share, either
gc.enable()
