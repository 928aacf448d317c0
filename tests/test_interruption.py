import signal
import sys
import time
import weakref
from types import ModuleType

import pytest

from vcl_radial.__main__ import main as started
from vcl_radial.cli import main
from vcl_radial.cli.arguments import INTERRUPTED
from vcl_radial.runs import runner


class Thing:
    pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_that_a_callback_swallows_comes_again(monkeypatch, capsys, number):
    def perform(*_args, **_settings):
        thing = Thing()
        kept = weakref.ref(thing, lambda _: signal.raise_signal(number))
        del thing
        assert kept() is None
        time.sleep(30)

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(runner, "perform", perform)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
    try:
        assert main(["run", "split-digits-multi-head", "--method", "naive"]) == 130
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
    assert capsys.readouterr().err.splitlines() == ["vcl-radial: stopped; the same command resumes"]


def test_an_interruption_of_the_first_imports_is_silent_and_has_the_same_exit_code(
    monkeypatch, capfd
):
    class Interrupted(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "vcl_radial.cli", Interrupted("vcl_radial.cli"))
    assert started() == INTERRUPTED
    assert capfd.readouterr() == ("", "")
