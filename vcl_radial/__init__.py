"""Variational continual learning with radial and Gaussian posteriors.

    import vcl_radial as vr

    results = vr.run("split-digits-multi-head", methods=["radial-vcl", "ewc"], seeds=3)
    results.summary()

The names below are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcl_radial import posteriors
    from vcl_radial.conformance import check
    from vcl_radial.integrations.scikit_learn import BayesLinearClassifier, BayesLinearRegressor
    from vcl_radial.methods.base import Method
    from vcl_radial.methods.vcl import VCL
    from vcl_radial.nn.convert import to_bayesian
    from vcl_radial.nn.mlp import MLP
    from vcl_radial.reporting.results import Results, load_results
    from vcl_radial.reporting.run import run
    from vcl_radial.runs.catalogue import list_benchmarks, list_methods
    from vcl_radial.runs.kept import load
    from vcl_radial.runs.updating import update
    from vcl_radial.sweeps.command import sweep
    from vcl_radial.sweeps.folder_report import report
    from vcl_radial.tracks.continual.benchmark import benchmark
    from vcl_radial.training.trainer import Trainer

__version__ = "0.1.0"

__all__ = [
    "MLP",
    "VCL",
    "BayesLinearClassifier",
    "BayesLinearRegressor",
    "Method",
    "Results",
    "Trainer",
    "__version__",
    "benchmark",
    "check",
    "list_benchmarks",
    "list_methods",
    "load",
    "load_results",
    "posteriors",
    "report",
    "run",
    "sweep",
    "to_bayesian",
    "update",
]

_MODULES = {
    "MLP": "vcl_radial.nn.mlp",
    "VCL": "vcl_radial.methods.vcl",
    "BayesLinearClassifier": "vcl_radial.integrations.scikit_learn",
    "BayesLinearRegressor": "vcl_radial.integrations.scikit_learn",
    "Method": "vcl_radial.methods.base",
    "Results": "vcl_radial.reporting.results",
    "Trainer": "vcl_radial.training.trainer",
    "benchmark": "vcl_radial.tracks.continual.benchmark",
    "check": "vcl_radial.conformance",
    "list_benchmarks": "vcl_radial.runs.catalogue",
    "list_methods": "vcl_radial.runs.catalogue",
    "load": "vcl_radial.runs.kept",
    "load_results": "vcl_radial.reporting.results",
    "report": "vcl_radial.sweeps.folder_report",
    "run": "vcl_radial.reporting.run",
    "sweep": "vcl_radial.sweeps.command",
    "to_bayesian": "vcl_radial.nn.convert",
    "update": "vcl_radial.runs.updating",
}
"""Where each public name is defined, for `__getattr__`."""


def __getattr__(name: str) -> Any:
    if name == "posteriors":
        return import_module("vcl_radial.posteriors")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
