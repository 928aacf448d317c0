"""Of every method, whatever its options: its state is all of it, and evaluating is free.

The checks of `vcl_radial.conformance` say the same of shipped recipes with heads of their own.
"""

import pytest
from gaussian_learners import NATURAL_STEP
from learners import (
    assert_evaluating_does_not_change_training,
    assert_it_goes_on_from_its_state,
    make,
    score,
    train,
)
from torch.optim import SGD

from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.strategies.badam import BAdam
from vcl_radial.strategies.coreset_vcl import CoresetVCL
from vcl_radial.strategies.ewc import EWC
from vcl_radial.strategies.ewc_separate import SeparateEWC
from vcl_radial.strategies.gvcl import GVCL
from vcl_radial.strategies.ivon import IVON
from vcl_radial.strategies.l2 import L2
from vcl_radial.strategies.laplace_diagonal import LaplaceDiagonal
from vcl_radial.strategies.laplace_kronecker import LaplaceKronecker
from vcl_radial.strategies.lwf import LwF
from vcl_radial.strategies.mas import MAS
from vcl_radial.strategies.ml_init_vcl import MLInitVCL
from vcl_radial.strategies.rdp_vcl import RDPVCL
from vcl_radial.strategies.replay import Replay
from vcl_radial.strategies.sfsvi import SFSVI
from vcl_radial.strategies.si import SI
from vcl_radial.strategies.single_task import SingleTask
from vcl_radial.strategies.vadam import VADAM
from vcl_radial.strategies.vcl import VCL
from vcl_radial.strategies.vogn import VOGN

METHODS = {
    "vcl": (VCL, "radial", {}),
    "coreset": (CoresetVCL, "gaussian", {"coreset_size": 10, "coreset_epochs": 3}),
    "coreset k-centre": (
        CoresetVCL,
        "gaussian",
        {"coreset_size": 10, "selection": "k-centre", "coreset_epochs": 3},
    ),
    "coreset after ml": (
        CoresetVCL,
        "gaussian",
        {"coreset_size": 10, "coreset_epochs": 1, "ml_epochs": 2},
    ),
    "ml-init": (MLInitVCL, "gaussian", {"ml_epochs": 2}),
    "ml-init every task": (MLInitVCL, "gaussian", {"ml_epochs": 2, "every_task": True}),
    "gvcl": (GVCL, "gaussian", {"strength": 5.0, "penalty_weight": 0.2}),
    "sfsvi": (SFSVI, "gaussian", {"context_points": 20}),
    "rdp row": (RDPVCL, RDPSettings("row", 0.05), {"lr": 1e-2}),
    "rdp column": (RDPVCL, RDPSettings("column", 0.05), {"lr": 1e-2}),
    "lwf": (LwF, None, {"strength": 2.0}),
    "replay": (Replay, None, {"buffer_size": 20}),
    "replay balanced": (Replay, None, {"buffer_size": 60, "selection": "class-balanced"}),
    "single-task": (SingleTask, None, {}),
    "badam": (BAdam, None, {"lr": 1e-2}),
    "vadam": (VADAM, None, {"lr": 1e-2}),
    "vogn": (VOGN, None, {"lr": NATURAL_STEP}),
    "ivon": (IVON, None, {"lr": NATURAL_STEP}),
    "laplace diagonal": (LaplaceDiagonal, None, {"lr": 1e-2}),
    "laplace kronecker": (LaplaceKronecker, None, {"lr": 1e-2}),
    "l2": (L2, None, {"penalty_weight": 100.0}),
    "ewc": (EWC, None, {"penalty_weight": 50.0}),
    "ewc separate": (SeparateEWC, None, {"penalty_weight": 50.0}),
    "si": (SI, None, {"penalty_weight": 3.0}),
    "si by sgd": (SI, None, {"optimizer": lambda model: SGD(model.parameters(), lr=1e-3)}),
    "mas": (MAS, None, {"penalty_weight": 0.03}),
}


@pytest.fixture(params=METHODS)
def method(request, make_network):
    """A class, its options, and a function that makes a network for it."""
    kind, posterior, options = METHODS[request.param]
    return kind, options, lambda multi_head: make_network(posterior, multi_head)


def test_a_state_dict_brings_the_strategy_back(method, scenario, tmp_path):
    assert_it_goes_on_from_its_state(*method, scenario, tmp_path)


def test_evaluating_does_not_change_training(method, scenario):
    assert_evaluating_does_not_change_training(*method, scenario)


@pytest.mark.parametrize(
    "method", ["lwf", "replay", "replay balanced", "single-task"], indirect=True
)
def test_avalanche_loaders_serve_as_well(method, multi_head_benchmark):
    """Without the tensor stream it runs as on any Avalanche benchmark, only slower."""
    kind, options, network_of = method
    strategy = make(kind, network_of(True), None, train_epochs=10, **options)
    train(strategy, list(multi_head_benchmark.train_stream)[:2])
    assert score(strategy, list(multi_head_benchmark.test_stream)[:2]) > 90
