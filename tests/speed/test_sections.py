import io
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from benchmarks.speed import (
    convolutions,
    growth,
    kl,
    lanes,
    memory,
    methods,
    regression,
    samples,
)
from benchmarks.speed.data import noise
from benchmarks.speed.measuring import SECTIONS
from benchmarks.speed.step import VARIANTS
from benchmarks.speed.training import EPOCH, STEP, TWO_TASKS, LaneTraining, Training
from vcl_radial.data.streams import load_dataset
from vcl_radial.errors import Diverged
from vcl_radial.likelihoods.predict import in_mode
from vcl_radial.methods.tasks import Batch
from vcl_radial.nn.lane_step import LaneStep


def measured(section, setting):
    """The medians of a section by variant, size and metric."""
    return {(r.variant, r.size, r.metric): r.median for r in SECTIONS[section].measure(setting)}


def assert_ratios(medians):
    """Every ratio is that of the first metric to the reference at the same size."""
    ratios = [key for key in medians if key[2].startswith("ratio to ")]
    assert ratios
    for variant, size, metric in ratios:
        reference = metric.removeprefix("ratio to ")
        first = next(m for _, s, m in medians if s == size)
        expected = medians[variant, size, first] / medians[reference, size, first]
        assert medians[variant, size, metric] == pytest.approx(expected)


@pytest.mark.usefixtures("probes_here")
@pytest.mark.parametrize(
    "section",
    [
        *("growth", "kl", "loops", "methods", "models"),
        *("peers", "prediction", "regression", "samples"),
    ],
)
def test_a_section_is_measured_with_ratios_to_its_reference(tiny, section, monkeypatch):
    monkeypatch.setattr(regression, "LANES", 2)
    assert_ratios(measured(section, tiny))


def test_a_step_of_every_variant_is_measured_in_both_recipes(tiny):
    medians = measured("step", tiny)
    assert_ratios(medians)
    sizes = {"batch=8": {"floor"}, "tuned, batch=16": set()}
    steps = {key[:2] for key in medians if key[2] == STEP}
    assert steps == {(v, size) for size, more in sizes.items() for v in {*VARIANTS, *more}}


def test_a_step_of_each_convolutional_network_is_measured(tiny, monkeypatch):
    site = SimpleNamespace(step=lambda: {STEP: 2.0})
    monkeypatch.setattr(convolutions, "PhotographTraining", lambda *args: site)
    medians = measured("convolutions", tiny)
    assert_ratios(medians)
    sizes = {f"{network}, batch=4" for network in ("convnet", "resnet", "vgg")}
    steps = {key[:2] for key in medians if key[2] == STEP}
    assert steps == {(method, size) for method in convolutions.METHODS for size in sizes}


def test_a_step_on_photographs_is_the_time_between_the_ends_of_two(tiny):
    now = iter(range(0, 1000, 3))
    setting = SimpleNamespace(clock=lambda: next(now), device="cpu", sizes=tiny.sizes)
    training = convolutions.PhotographTraining("radial-vcl", {"batch_size": 8}, setting)
    assert training.step() == {STEP: 3.0}
    assert next(now) // 3 > 3  # ends of at least two steps, and of the whole
    network = training.trainer.method.network
    assert any(type(m).__name__ == "BayesianConv2d" for m in network.modules())


@pytest.mark.parametrize("draws", [1, 3])
def test_batched_samples_are_draws_of_the_networks_outputs(tiny, draws):
    """Outputs are those of one sample after another where the noise is negligible."""
    keys = {**tiny.sizes.recipe, "train_samples": draws, "initial_noise": 1e-9, "prior_scale": 1e4}
    training = Training("radial-vcl", keys, tiny)
    method = training.method
    batch = Batch(training.stream.inputs(1, "train"), training.stream.labels(1, "train"), 1)
    results = []
    for batched in (False, True):
        if batched:
            samples.batch_samples(method)
        with in_mode(method.network, training=True):
            outputs = method.outputs(batch)
        results.append(outputs.detach())
    shape = (draws, len(batch.y), 2) if draws > 1 else (len(batch.y), 2)
    assert results[0].shape == shape
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-4)


def test_a_step_by_batched_samples_learns_the_means_as_the_loop_does(tiny):
    """Adam's first steps have one size, so that means with a gradient move as far both ways."""
    keys = {**tiny.sizes.recipe, "train_samples": 2, "epochs": 3}
    moved = []
    for batched in (False, True):
        training = Training("radial-vcl", keys, tiny)
        before = [p.detach().clone() for p in training.method.network.parameters()]
        if batched:
            samples.batch_samples(training.method)
        training.train()
        pairs = zip(training.method.network.parameters(), before, strict=False)
        moved.append(torch.cat([(p.detach() - b).flatten() for p, b in pairs]))
    assert (moved[0] != 0).float().mean() > 0.9
    assert torch.cosine_similarity(*moved, dim=0) > 0.5


def test_the_kl_draws_nothing():
    work = kl.work_of(100, "cpu")
    state = torch.get_rng_state()
    assert torch.equal(work["value"](), work["value"]())
    work["gradient alone"]()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("D", [900, 3600])
def test_the_forward_pass_beside_the_kl_has_as_many_weights(D):
    assert kl.work_of(D, "cpu")[kl.FORWARD]().shape == (kl.BATCH, D**0.5)


def test_lanes_and_a_network_by_itself_make_as_many_steps(tiny, monkeypatch):
    steps = []
    step = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: steps.append(1) or step(self))
    trainer = SimpleNamespace(steps=lambda tasks: iter([[]]))
    monkeypatch.setattr(
        regression, "LaneTrainer", lambda lanes, **keys: steps.append(keys["steps"]) or trainer
    )
    regression.measure(tiny)
    n = tiny.sizes.regression_steps
    both = 2  # a warm-up, and a round
    assert steps.count(n) == both * 2 * len(regression._POSTERIORS)
    assert steps.count(1) == both * n


def test_noise_is_a_data_set_with_so_many_images_of_each_class(tmp_path):
    images = noise(tmp_path, 200, 3, 2)
    data = load_dataset(images.dataset, images.folder)
    assert data.train_x.shape == (600, 28, 28)
    assert data.train_y.bincount().tolist() == [3] * 200
    assert data.test_y.bincount().tolist() == [2] * 200


def test_methods_of_all_tasks_together_or_of_missing_packages_are_left_out(
    tiny, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "ivon", None)
    setting = replace(tiny, sizes=replace(tiny.sizes, methods=("joint", "ivon", "naive")))
    assert {variant for variant, _, _ in measured("methods", setting)} == {"naive"}
    assert "ivon: not measured" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["ewc-separate", "replay"])
def test_a_memory_that_grows_with_the_tasks_is_that_of_two_in_every_round(tiny, method):
    training = methods.second_task(method, tiny)
    measure = methods.from_the_same_state(training)
    sizes = set()
    for _ in range(2):
        measure()
        file = io.BytesIO()
        torch.save(training.trainer.state_dict(), file)
        sizes.add(len(file.getvalue()))
    assert len(sizes) == 1


def test_the_weights_of_an_axis_are_those_of_its_network(tiny):
    keys = {**tiny.sizes.recipe, **TWO_TASKS, "epochs": 1, "hidden": [9] * 4}
    training = memory.train_tasks("naive", keys, tiny.on(noise(tiny.scratch, 4, 64, 1)))
    counted = sum(p.numel() for p in training.method.network.parameters())
    assert growth.weights(9) == counted


def test_every_task_but_the_first_is_timed(tiny, monkeypatch):
    tasks = []

    monkeypatch.setattr(Training, "train_task", lambda self, number: tasks.append(number))
    now = iter([0, 1, 3, 6, 10, 15])
    setting = SimpleNamespace(**{**vars(tiny), "clock": lambda: next(now), "on": tiny.on})
    monkeypatch.setattr(growth, "Training", lambda *args: Training(*args[:2], tiny))
    keys = {**tiny.sizes.recipe, **TWO_TASKS, "stream.tasks": 5, "epochs": 2}
    values = growth.train_all("naive", keys, setting)
    assert tasks == [0, 1, 2, 3, 4]
    assert values == {growth.TASK: 2.5, "last fifth / first fifth": 4.0}


@pytest.mark.parametrize(
    ("method", "least", "most"),
    [
        # Parameters, prior, AMSGrad's three per parameter; gradients are kept without a compiler.
        ("radial-vcl", 2 + 2 + 6, 2 + 2 + 6 + 2),
        ("naive", 1 + 3, 1 + 3 + 1),
    ],
)
def test_what_a_training_holds_is_what_its_method_needs(tiny, method, least, most):
    training = Training(method, {**tiny.sizes.recipe, "epochs": 2, "hidden": [50]}, tiny)
    training.train()
    parameters = sum(p.numel() for p in training.method.network.parameters())
    weights = parameters / (2 if method == "radial-vcl" else 1)
    # The other task's head need not have moments.
    assert (
        least - 0.1
        <= memory.held_bytes(training.method.network, training.optimizer) / (4 * weights)
        <= most
    )


def test_memory_that_is_shared_counts_once():
    network = torch.nn.Linear(3, 1)
    network.register_buffer("same", network.weight.detach())
    optimizer = SimpleNamespace(state={0: {"moment": torch.zeros(5), "step": 7}})
    assert memory.held_bytes(network, optimizer) == 4 * (3 + 1 + 5)


@pytest.mark.processes
def test_a_fresh_process_measures_what_is_held_and_the_peak_of_it(tiny):
    keys = {**tiny.sizes.recipe, **TWO_TASKS, "epochs": 2, "hidden": [2000, 2000]}
    setting = tiny.on(noise(tiny.scratch, 4, 8, 1))
    alone = partial(memory.train_tasks, "naive", {**keys, "batch_size": 4}, setting)
    small = {**keys, "hidden": [50], "batch_size": 4}
    both = partial(memory.train_lanes, 2, small, setting)
    measured, of_lanes = memory.in_fresh_processes([alone, both])
    assert measured[memory.HELD] == memory.measure_probe(alone)[memory.HELD]
    if not memory.memory()[1]:
        pytest.skip("only Linux says what a process's peak was")
    assert measured[memory.PEAK] > 0.8 * measured[memory.HELD]
    assert list(of_lanes) == [memory.PEAK]
    assert 0 < of_lanes[memory.PEAK] < measured[memory.PEAK]


def lane_training(setting, count: int, **others) -> LaneTraining:
    return LaneTraining(count, {**setting.sizes.recipe, "epochs": 2, **others}, setting)


def bodies(training: LaneTraining) -> list[bytes]:
    return [
        b"".join(p.detach().numpy().tobytes() for p in lane.method.network.body.parameters())
        for lane in training.together.lanes
    ]


def test_the_second_task_is_trained_in_every_lane_again_and_again(tiny):
    training = lane_training(tiny, 3)
    states = [*bodies(training)]
    for _ in range(2):
        training.train()
        states += bodies(training)
    assert len(set(states)) == 9
    assert [lane.tasks_done for lane in training.together.lanes] == [2, 2, 2]


def test_an_epochs_seconds_are_those_between_the_ends_of_epochs(tiny):
    ticks = []
    clock = lambda: ticks.append(2.0 * len(ticks)) or ticks[-1]  # noqa: E731
    training = lane_training(SimpleNamespace(**{**vars(tiny), "clock": clock}), 2).fill(10.0)
    ticks.clear()
    assert training.train()[EPOCH] == 2.0
    assert len(ticks) == 5 + 2  # one lane's epochs, not every lane's, and the whole call


def test_lanes_make_the_steps_that_a_run_alone_makes(tiny, monkeypatch):
    steps = []
    step = LaneStep.__call__
    alone = Training("radial-vcl", {**tiny.sizes.recipe, "epochs": 2}, tiny)
    alone.train()
    training = lane_training(tiny, 3)
    monkeypatch.setattr(
        LaneStep, "__call__", lambda self, rows: steps.append(len(rows)) or step(self, rows)
    )
    training.train()
    assert steps == [3] * (2 * alone.steps)


def test_a_lane_that_diverges_ends_the_measurement(tiny):
    with pytest.raises(Diverged):
        lane_training(tiny, 2, learning_rate=1e30).train()


def test_a_lanes_cost_is_its_share_of_a_step_over_that_of_a_run_alone(tiny, monkeypatch):
    class FakeTraining:
        """Epochs of fixed seconds, of four steps."""

        def __init__(self, lanes, *_) -> None:
            seconds = {1: 3.0, 2: 4.0}.get(lanes, 2.0)
            self.steps, self.train = 4, lambda: {EPOCH: seconds}

        def fill(self, seconds: float) -> "FakeTraining":
            return self

    monkeypatch.setattr(lanes, "Training", FakeTraining)
    monkeypatch.setattr(lanes, "LaneTraining", FakeTraining)
    monkeypatch.setattr(lanes, "rows_of_probes", lambda probes: [])
    assert measured("lanes", tiny) == {
        (name, f"lanes={R}", metric): value
        for name in ("fashion network", "small network")
        for metric, values in ((STEP, (3 / 4, 4 / 4)), (lanes.PER_LANE, (3 / 2, 4 / 2 / 2)))
        for R, value in enumerate(values, 1)
    }
