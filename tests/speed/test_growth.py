import pytest
import torch
from speed_rows import resized, row

from benchmarks.speed import growth, memory
from benchmarks.speed.data import noise
from benchmarks.speed.exponents import exponent, exponents
from benchmarks.speed.memory import PEAK, Probe
from benchmarks.speed.training import TWO_TASKS, Training, number_of_weights

AXES = {axis.name: axis for axis in (*growth.STEPS, growth.PREDICTIONS, growth.TASKS)}


@pytest.mark.parametrize("b", [-0.5, 0.0, 1.0, 2.0])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_exponent_of_a_power_law_is_found_in_the_upper_half_of_the_sizes(b, count):
    sizes = [2.0, 6.0, 10.0, 40.0, 100.0][:count]
    costs = [7 * size**b for size in sizes]
    assert exponent(sizes, costs) == pytest.approx(b)
    if count > 2:
        assert exponent(sizes, [1e9, *costs[1:]]) == pytest.approx(
            b
        )  # a constant cost of small sizes


def test_seconds_and_megabytes_have_exponents_by_axis_and_variant():
    rows = [
        row("growth", variant, f"{axis}={n}", metric, [factor * n**b, 9e9, 0.0])
        for variant, factor in (("ours", 1.0), ("naive", 3.0))
        for axis in ("draws", "tasks")
        for n in (16, 1, 4)
        for metric, b in (("seconds per step", 1.0), ("memory: peak (MB)", 0.5), ("ratio", 2.0))
    ]
    rows += [row("growth", "ours", "classes=2", "seconds per step", [1.0])]
    rows += [row("growth", "ours", "", "seconds", [1.0])]
    fitted = {(r.variant, r.metric): r.median for r in exponents("growth", rows)}
    assert fitted == {
        (f"{cost} over {axis}", f"exponent, {variant}"): pytest.approx(b)
        for cost, b in (("seconds per step", 1.0), ("peak (MB)", 0.5))
        for axis in ("draws", "tasks")
        for variant in ("ours", "naive")
    }


@pytest.mark.parametrize(
    ("axis", "value", "tasks", "classes"),
    [("weights", 9, 2, 2), ("classes", 3, 2, 3), ("draws", 4, 2, 2), ("tasks", 5, 5, 2)],
)
def test_an_axis_has_images_for_its_tasks_and_classes(tiny, axis, value, tasks, classes):
    axis = AXES[axis]
    keys = {**axis.keys_of(value, tiny), "batch_size": 4, "epochs": 2}
    images = axis.images(value, 16, tiny)
    stream = Training("naive", keys, images, tiny).run.stream
    assert (stream.n_tasks, stream.n_classes) == (tasks, classes)
    assert all(16 <= len(rows) < 16 + classes for rows in stream.train)


def test_the_weights_of_an_axis_are_those_of_its_network(tiny):
    axis = AXES["weights"]
    keys = {**axis.keys_of(9, tiny), "epochs": 2}
    training = Training("naive", keys, axis.images(9, 32, tiny), tiny)
    training.train()
    weights = sum(p.numel() for p in training.strategy.network.parameters())
    assert axis.sizes(resized(tiny, widths=(9,))) == {9: f"weights={weights}"}


@pytest.mark.parametrize("axis", growth.STEPS, ids=lambda axis: axis.name)
def test_a_step_along_an_axis_is_held_against_that_with_point_estimates(tiny, axis):
    rows = growth.cost_of_steps(axis, resized(tiny))
    medians = {(r.variant, r.size, r.metric): r.median for r in rows}
    sizes = list(axis.sizes(tiny).values())
    assert list(dict.fromkeys(r.size for r in rows)) == sizes
    for size in sizes:
        ours, point = (medians[method, size, "seconds per step"] for method in growth.METHODS)
        assert medians["radial-vcl", size, "ratio to naive"] == pytest.approx(ours / point)


def test_a_prediction_has_as_many_draws_as_its_size_says(tiny, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "vcl_radial.methods.vcl.VCL.predict",
        lambda self, x, head: drawn.append((len(x), self.eval_samples)),
    )

    def once(work, clock, metric, seconds):
        return lambda: work() or {metric: 1.0}

    monkeypatch.setattr(growth, "timed_calls", once)
    sizes = [r.size for r in growth.cost_of_predictions(resized(tiny))]
    assert sizes == [f"prediction draws={n}" for _, n in drawn]
    assert drawn == [(growth.SCORED, n) for n in tiny.sizes.prediction_draws]


def test_every_task_is_trained_and_then_scored_once(tiny, monkeypatch):
    done = []
    for kind in ("train", "eval"):
        monkeypatch.setattr(
            f"vcl_radial.strategies.base.ContinualStrategy.{kind}",
            lambda self, experiences, _kind=kind, **more: done.append(
                (_kind, *(e.current_experience for e in experiences))
            ),
        )
    images = noise(tiny.scratch / "tasks", 6, 8, 2)
    values = growth.train_all("naive", 3, images, tiny)
    assert done == [("train", 0), ("train", 1), ("train", 2), *(("eval", k) for k in range(3))]
    assert set(values) == {"seconds per task", "last fifth / first fifth", "seconds per evaluation"}


@pytest.mark.parametrize(
    ("method", "multiples"),
    [
        # parameters, gradients, prior, and AMSGrad's three per parameter
        ("radial-vcl", {"parameters": 2, "gradients": 2, "prior": 2, "optimiser": 6}),
        ("naive", {"parameters": 1, "gradients": 1, "prior": 0, "optimiser": 3}),
    ],
)
def test_what_a_training_holds_is_what_its_method_needs(tiny, method, multiples):
    keys = {**tiny.sizes.recipe, "epochs": 2, "hidden": [50]}
    training = Training(method, keys, tiny.images, tiny)
    training.train()
    weights = number_of_weights(training.layers, heads=2)
    held = memory.state_bytes(training.strategy)
    # At most: gradients or moments of the other task's head need not be there.
    for kind, multiple in multiples.items():
        assert held[kind] / (4 * weights) <= multiple + 0.01, kind
    assert held["parameters"] == 4 * weights * multiples["parameters"]


def test_memory_that_is_shared_counts_once():
    flat, counted = torch.zeros(10), set()
    assert memory.new_bytes([flat[:5], flat[5:], torch.zeros(3)], counted) == 40 + 12
    assert memory.new_bytes([flat[:5]], counted) == 0


@pytest.mark.processes
def test_a_fresh_process_measures_what_is_held_and_the_peak_of_it(tiny):
    keys = {**tiny.sizes.recipe, **TWO_TASKS, "epochs": 2}
    wide, narrow = ({**keys, "hidden": hidden} for hidden in ([2000, 2000], [50]))
    alone = Probe("naive", wide, noise(tiny.scratch / "probe", 4, 8, 1), tiny)
    measured, lanes = memory.in_fresh_processes([alone, alone._replace(lanes=2, keys=narrow)])
    held, per_weight = measured["memory: held (MB)"], measured["memory: bytes held per weight"]
    weights = number_of_weights([(784, 2000), (2000, 2000), (2000, 2)], heads=2)
    assert held == pytest.approx(per_weight * weights / 1e6)
    assert per_weight == pytest.approx(20, rel=1e-3)  # five numbers of four bytes for each
    here = memory.measure_probe(alone)
    assert {**here, PEAK: 0} == {**measured, PEAK: 0}
    if memory.status_bytes("VmHWM") is None:
        pytest.skip("only Linux says what a process's peak was")
    assert measured[PEAK] > 0.8 * held
    assert list(lanes) == [PEAK]
    assert 0 < lanes[PEAK] < measured[PEAK]
