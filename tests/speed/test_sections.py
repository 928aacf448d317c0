import io
import sys
from types import SimpleNamespace

import pytest
import torch
from speed_rows import resized

from benchmarks.speed import convolutions, kl, methods, step
from benchmarks.speed.data import noise
from benchmarks.speed.training import STEP
from vcl_radial.data.streams import load_dataset


def assert_ratios(rows, references):
    """Every ratio of a step is that to its reference at the same size; gives their keys."""
    medians = {(r.variant, r.size, r.metric): r.median for r in rows}
    ratios = [key for key in medians if key[2] in references]
    for name, size, metric in ratios:
        ours, theirs = (medians[n, size, STEP] for n in (name, references[metric]))
        assert medians[name, size, metric] == pytest.approx(ours / theirs)
    return ratios


def test_a_step_is_held_against_those_of_fine_tuning_the_floor_and_the_gaussian(tiny):
    rows = step.measure(resized(tiny)).rows
    references = {"ratio to naive": "naive", "ratio to the floor": "floor"}
    ratios = assert_ratios(rows, {**references, "ratio to gaussian-vcl": "gaussian-vcl"})
    sizes = ["batch=8", "batch=16", "tuned, batch=16"]
    assert list(dict.fromkeys(r.size for r in rows)) == sizes
    for size in sizes:
        over_naive = {name for name, of, metric in ratios if (of, metric) == (size, step.RATIO)}
        floors = set() if "tuned" in size else {"floor"}
        wide = step.WIDE if size == "batch=16" else {}
        assert over_naive == {*step.VARIANTS, *wide, *floors} - {"naive"}


def test_a_step_of_each_convolutional_network_is_held_against_fine_tuning(tiny):
    rows = convolutions.measure(resized(tiny)).rows
    ratios = assert_ratios(rows, {"ratio to naive": "naive"})
    sizes = ("convnet, batch=4", "resnet, batch=4", "vgg, batch=4")
    bayesian = ("gaussian-vcl", "radial-vcl")
    assert ratios == [(name, size, "ratio to naive") for size in sizes for name in bayesian]


def test_a_step_on_photographs_is_the_time_between_the_ends_of_two(tiny):
    now = iter(range(0, 1000, 3))
    setting = SimpleNamespace(clock=lambda: next(now), device="cpu", sizes=tiny.sizes)
    training = convolutions.PhotographTraining("radial-vcl", {"batch_size": 8}, setting)
    calls = next(now) // 3
    assert calls == len(training.site.batches) + 2 > 3  # the ends of steps, and of the whole
    assert training.train() == {STEP: 3.0}
    assert any(type(m).__name__ == "BayesianConv2d" for m in training.site.network.modules())


@pytest.mark.parametrize(
    ("device", "reason", "words"),
    [
        ("cpu", None, "was in use"),
        ("cpu", "no compiler", "was not in use (no compiler)"),
        ("cuda", None, "was not in use (it works on a CPU)"),
    ],
)
def test_a_step_says_whether_the_compiled_pass_was_in_use(monkeypatch, device, reason, words):
    monkeypatch.setattr(step.native, "unavailable", lambda: reason)
    assert words in step.compiled_pass(device)


@pytest.mark.parametrize("D", [100, 900])
def test_the_kl_draws_nothing(D):
    work = kl._work(D, "cpu")
    state = torch.get_rng_state()
    first, second = work["value"](), work["value"]()
    work["gradient alone"]()
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("D", [900, 3600])
def test_the_forward_passes_beside_the_kl_have_as_many_weights(D):
    work = kl._work(D, "cpu")
    assert work[kl.FORWARD]().shape == (kl.BATCH, D**0.5)
    channels = int((D / 9) ** 0.5)
    assert work[kl.CONVOLUTION]().shape == (kl.BATCH, channels, kl.SIDE, kl.SIDE)


def test_the_kl_is_held_against_a_linear_layer_and_a_convolution_of_the_same_rounds(tiny):
    rows = kl.measure(resized(tiny)).rows
    found = {(r.variant, r.size, r.metric): r.median for r in rows}
    for D in tiny.sizes.group_sizes:
        for name in ("value", "gradient alone"):
            for reference, metric in (
                ("forward pass", "ratio to the forward pass"),
                ("forward pass, convolution", "ratio to a convolution's"),
            ):
                seconds = [found[v, f"D={D}", "seconds"] for v in (name, reference)]
                assert found[name, f"D={D}", metric] == pytest.approx(seconds[0] / seconds[1])


def test_noise_is_a_data_set_with_so_many_images_of_each_class(tmp_path):
    images = noise(tmp_path, 200, 3, 2)
    data = load_dataset(images.dataset, images.folder)
    assert data.train_x.shape == (600, 28, 28)
    assert data.train_y.bincount().tolist() == [3] * 200
    assert data.test_y.bincount().tolist() == [2] * 200


def test_a_method_is_held_against_fine_tuning_unless_it_trains_on_all_tasks_together(tiny):
    result = methods.measure(resized(tiny))
    found = {(r.variant, r.metric): r.median for r in result.rows}
    assert {variant for variant, _ in found} == {"naive", "ewc-separate", "radial-vcl"}
    assert [note.partition(":")[0] for note in result.notes[1:]] == ["joint"]
    seconds = {
        method: 20 * found[method, "seconds per epoch"] + found[method, "fixed seconds per task"]
        for method, _ in found
    }
    for method in ("ewc-separate", "radial-vcl"):
        ratio = found[method, methods.RATIO]
        assert ratio == pytest.approx(seconds[method] / seconds["naive"])


def test_methods_whose_package_is_missing_are_told_of(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "ivon", None)
    result = methods.measure(resized(tiny, methods=("naive", "ivon")))
    assert {r.variant for r in result.rows} == {"naive"}
    assert "pip install" in result.notes[-1]


@pytest.mark.parametrize("method", ["ewc-separate", "replay"])
def test_a_memory_that_grows_with_the_tasks_is_that_of_two_in_every_round(tiny, method):
    training = methods.second_task(method, tiny.images, tiny)
    measure = methods.from_the_same_state(training)
    sizes = []
    for _ in range(3):
        measure()
        sizes.append(len(pickled(training.strategy.state_dict())))
    assert sizes[0] == sizes[1] == sizes[2]


def pickled(state) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()
