"""Finished runs with a kept model, each trained once for all tests."""

from functools import cache

import pytest
from tiny_runs import MULTI_HEAD, carried_out, tiny_run

from vcl_radial.runs.folder import RunFolder


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """Return the folder of a tiny run; no test may change it."""

    @cache
    def folder(method="radial-vcl", benchmark=MULTI_HEAD, seed=0, **settings):
        out = tmp_path_factory.getbasetemp() / "kept"
        run = tiny_run(method, benchmark, seed=seed, **settings)
        carried_out(run, out)
        return RunFolder(out, run).path

    return folder
