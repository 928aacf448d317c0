"""Import the modules of the workers, in the server from which workers are forked."""

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
    # The server itself checks its parent only after the imports.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
if parent and os.getppid() != int(parent):  # the parent ended before the call above
    os._exit(1)
# The garbage collector would scan a million new objects repeatedly, which takes a fifth of the
# time.
gc.disable()
with quiet():
    for module in filter(None, modules.split(",")):
        with suppress(Exception):  # a worker that needs the module raises the error
            importlib.import_module(module)
loaded()  # read the commit for all workers
gc.freeze()  # so that workers do not write to shared pages
gc.enable()
