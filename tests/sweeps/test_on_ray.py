"""On a real Ray cluster of two nodes on this machine."""

import os
from pathlib import Path

import pytest
from patience import PATIENT, alive, until
from tiny_sweeps import DIGITS, plans_of, swept, trials_bytes

from vcl_radial.errors import UserError
from vcl_radial.integrations.ray import RayExecutor
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.runner import perform
from vcl_radial.sweeps.command import perform_sweep
from vcl_radial.tracks.continual.track import Continual

pytest.importorskip("ray", reason="Ray is not installed (the extra `ray`)")
pytestmark = pytest.mark.processes


@pytest.fixture
def two_nodes(tmp_path: Path, user_module, monkeypatch: pytest.MonkeyPatch):
    import ray
    from ray.cluster_utils import Cluster

    user_module("patient", PATIENT)
    paths = [str(tmp_path / "user"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    other = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster, other
    ray.shutdown()
    cluster.shutdown()


def test_a_node_is_killed_in_mid_sweep_and_the_table_is_that_of_an_undisturbed_one(
    two_nodes, tmp_path: Path
) -> None:
    cluster, node = two_nodes
    gate = tmp_path / "gate"
    gate.mkdir()
    lost = []

    class Disturbed(RayExecutor):
        def wait(self):
            if not (gate / "open").exists():
                until(lambda: len(list(gate.iterdir())) == 2)  # each node is at work on a run
                workers = [path.name for path in gate.iterdir()]
                cluster.remove_node(node, allow_graceful=False)
                until(lambda: not all(map(alive, workers)))
                (gate / "open").touch()
            ends = super().wait()
            lost.extend(end for end in ends if end.status == "lost")
            return ends

    changes = {
        "kind": "tpe",
        "trials": 4,
        "at_once": 2,
        "fixed__strategy": "patient:Patient",
        "fixed__options": {"gate": str(gate)},
        "search__batch_size": [16, 32],
    }

    executor = Disturbed(cluster.address)
    perform_sweep(plans_of(**changes), RunContext(tmp_path / "ray"), executor=executor)
    assert len(lost) == 1
    assert "was lost" in lost[0].fault
    swept(tmp_path / "here", **changes)
    assert trials_bytes(tmp_path / "ray") == trials_bytes(tmp_path / "here")
    results = ("spec.toml", "accuracy.csv", "metrics.json")
    ray_files, here_files = (
        {
            path.relative_to(tmp_path / where): path.read_bytes()
            for path in (tmp_path / where).glob(f"tiny/runs/{DIGITS}/*/*/*")
            if path.name in results
        }
        for where in ("ray", "here")
    )
    assert ray_files == here_files
    assert len(ray_files) == 3 * 4


def test_a_command_s_runs_on_the_nodes_of_a_cluster_have_the_bytes_of_runs_here(
    two_nodes, tmp_path: Path
) -> None:
    (plan,) = plans_of()
    runs = [plan.run({"learning_rate": 0.01}, seed) for seed in (0, 1)]
    here, there = RunContext(tmp_path / "here"), RunContext(tmp_path / "there")
    assert [end.status for end in perform(runs, here, jobs=1)] == ["finished"] * 2
    ends = perform(runs, there, executor=RayExecutor(two_nodes[0].address))
    assert [end.status for end in ends] == ["finished"] * 2
    for run in runs:
        one, other = (RunFolder(context.out, run) for context in (here, there))
        assert other.finished()
        for name in ("spec.toml", "accuracy.csv", "metrics.json"):
            assert (one.path / name).read_bytes() == (other.path / name).read_bytes()


def test_without_a_cluster_at_the_address_one_line_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        RayExecutor("127.0.0.1:1").start(Continual(), RunContext(tmp_path), print)
    assert caught.value.key == "address"


def test_a_cluster_that_is_started_here_listens_on_the_loopback_alone(tmp_path, monkeypatch):
    import psutil

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    executor = RayExecutor("local")
    executor.start(Continual(), RunContext(tmp_path), print)
    try:
        listening = {
            connection.laddr.ip.removeprefix("::ffff:")
            for process in psutil.Process().children(recursive=True)
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
    finally:
        executor.close()
    assert listening == {"127.0.0.1"}
