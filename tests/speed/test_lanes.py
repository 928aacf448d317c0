from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from benchmarks.speed import lanes
from benchmarks.speed.setting import Setting
from benchmarks.speed.training import EPOCH, LANE_METHOD, LaneTraining, Training, runs_of
from vcl_radial.errors import Diverged, VclRadialError
from vcl_radial.nn.lane_step import LaneStep
from vcl_radial.runs.attempt import RunOutcome


def keys(tiny: Setting, **others):
    return {**tiny.sizes.recipe, "epochs": 2, "eval_samples": 1, **others}


def lane_training(setting, count: int, **others) -> LaneTraining:
    return LaneTraining(count, keys(setting, **others), setting.images, setting)


def bodies(training: LaneTraining) -> list[torch.Tensor]:
    return [
        torch.cat([p.detach().flatten() for p in lane.model.network.body.parameters()])
        for lane in training.together.lanes
    ]


def test_the_second_task_is_trained_in_every_lane_again_and_again(tiny):
    training = lane_training(tiny, 3)
    before = bodies(training)
    training.train()
    once = bodies(training)
    training.train()
    for state in (before, once, bodies(training)):
        assert not torch.equal(state[0], state[1])
        assert not torch.equal(state[1], state[2])
    for ours in zip(before, once, bodies(training), strict=True):
        assert not torch.equal(ours[0], ours[1])
        assert not torch.equal(ours[1], ours[2])
    assert [lane.tasks_done for lane in training.together.lanes] == [2, 2, 2]


@pytest.mark.parametrize("epochs", [2, 5])
def test_an_epochs_seconds_are_those_between_the_ends_of_epochs(tiny, epochs):
    ticks = []

    def clock() -> float:
        ticks.append(2.0 * len(ticks))
        return ticks[-1]

    training = lane_training(SimpleNamespace(**{**vars(tiny), "clock": clock}), 2)
    training.fill(2.0 * epochs)
    ticks.clear()
    assert training.train()[EPOCH] == 2.0
    assert len(ticks) == epochs + 2  # one lane's epochs, not every lane's, and the whole call


@pytest.mark.parametrize("count", [1, 3])
def test_lanes_make_the_steps_that_a_run_alone_makes(tiny, monkeypatch, count):
    steps = []
    step = LaneStep.__call__

    def counted(self, rows):
        steps.append(len(rows))
        return step(self, rows)

    alone = Training(LANE_METHOD, keys(tiny), tiny.images, tiny)
    alone.train()
    training = lane_training(tiny, count)
    monkeypatch.setattr(LaneStep, "__call__", counted)
    training.train()
    assert steps == [count] * (2 * alone.steps)


def test_a_lane_that_diverges_ends_the_measurement(tiny):
    with pytest.raises(Diverged, match=r"the loss became|not numbers"):
        lane_training(tiny, 2, learning_rate=1e30).train()


def test_ratios_are_those_to_one_lane_and_to_a_run_alone(tiny, monkeypatch):
    seconds = {"1": 3.0, "2": 4.0, "alone": 2.0}

    class FakeTraining:
        """Epochs that last as long as they are told, of four steps."""

        def __init__(self, name: str) -> None:
            self.name, self.steps = name, 4

        def fill(self, seconds: float) -> None:
            """Nothing has to be filled."""

        def train(self) -> dict[str, float]:
            return {EPOCH: seconds[self.name]}

    monkeypatch.setattr(lanes, "Training", lambda *args: FakeTraining("alone"))
    monkeypatch.setattr(lanes, "LaneTraining", lambda count, *args: FakeTraining(str(count)))
    monkeypatch.setattr(lanes, "peaks", lambda section, probes: [])
    rows = lanes.measure(replace(tiny, device="cuda")).rows
    rows = [r for r in rows if r.size]
    found = {(r.variant, r.size, r.metric): r.median for r in rows}
    expected = {
        "seconds per step": (3 / 4, 4 / 4),
        "ratio to one lane": (1, 4 / 3),
        "ratio to one lane, per lane": (1, 2 / 3),
        "ratio to a run alone, per lane": (3 / 2, 4 / 2 / 2),
    }
    assert found == {
        (name, f"lanes={R}", metric): pytest.approx(values[R - 1])
        for name in ("fashion network", "small network")
        for metric, values in expected.items()
        for R in (1, 2)
    }
    assert {r.repeats for r in rows} == {tiny.repeats}


@pytest.mark.parametrize(("device", "measured"), [("cpu", True), ("cuda", False)])
def test_worker_processes_are_measured_on_a_cpu(tiny, monkeypatch, device, measured):
    performed = []
    monkeypatch.setattr(lanes, "steps_of_lanes", lambda *args: [])
    monkeypatch.setattr(
        lanes,
        "cost_of_runs",
        lambda name, runs, *args: performed.append((name, len(runs))) or [],
    )
    result = lanes.measure(replace(tiny, device=device))
    assert performed == ([("small network", 2)] if measured else [])
    assert any("--jobs" in note for note in result.notes) == measured


def test_one_process_is_held_against_two_with_and_without_lanes(tiny, monkeypatch):
    seconds = {(1, 1): 12.0, (2, 1): 8.0, (2, 3): 3.0}
    now = [0.0]
    out = set()

    def perform(runs, context, jobs, lanes):
        assert context.data_dir == tiny.images.folder
        assert tiny.scratch in context.out.parents
        assert not any(context.out.iterdir())
        out.add(context.out)
        now[0] += seconds[jobs, lanes]
        return [RunOutcome(run, "finished") for run in runs]

    monkeypatch.setattr(lanes, "perform", perform)
    monkeypatch.setattr(lanes, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    runs = runs_of(5, tiny.images, keys(tiny))
    rows = lanes.cost_of_runs("a network", runs, tiny.images, tiny)
    found = {(r.variant, r.metric): r.median for r in rows}
    assert found == {
        ("a network, one process", "seconds"): 12,
        ("a network, --jobs 2", "seconds"): 8,
        ("a network, --jobs 2", "times one process"): 1.5,
        ("a network, --jobs 2 --lanes 3", "seconds"): 3,
        ("a network, --jobs 2 --lanes 3", "times one process"): 4,
    }
    assert len(out) == 3 * tiny.repeats
    assert not any(folder.exists() for folder in out)


def test_runs_are_carried_out_in_silence_and_leave_nothing_behind(tiny, capsys):
    before = {*tiny.scratch.rglob("*")}
    runs = runs_of(2, tiny.images, keys(tiny, epochs=1))
    lanes._carry_out(runs, tiny.images, tiny, 1, 2)
    assert capsys.readouterr().out == ""
    assert {*tiny.scratch.rglob("*")} == before


def test_a_run_that_fails_is_told_of_in_its_own_words(tiny):
    runs = runs_of(2, tiny.images, keys(tiny, batch_size=100_000))
    with pytest.raises(VclRadialError, match="batch_size = 100000"):
        lanes._carry_out(runs, tiny.images, tiny, 1, 1)
