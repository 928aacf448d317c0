from dataclasses import replace
from pathlib import Path

import pytest
import torch
from failing import data_fails, fails

from vcl_radial.data.streams import ImageData, build_stream, load_dataset, split_stream
from vcl_radial.runs import catalogue


def test_the_parts_of_all_tasks_are_disjoint_and_complete(tiny: ImageData) -> None:
    stream = split_stream(tiny)
    n_train = len(tiny.train_y)
    trained = torch.cat([*stream.train, *stream.validation]).sort().values
    assert torch.equal(trained, torch.arange(n_train))
    tested = torch.cat(stream.test).sort().values
    assert torch.equal(tested, torch.arange(n_train, n_train + len(tiny.test_y)))


def test_each_task_holds_exactly_its_classes(tiny: ImageData) -> None:
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    stream = split_stream(tiny, class_order=order)
    classes = torch.cat([tiny.train_y, tiny.test_y])
    for task in range(5):
        expected = set(order[2 * task : 2 * task + 2])
        assert stream.task_names[task] == ", ".join(f"class {c}" for c in order[2 * task :][:2])
        assert set(classes[stream.train[task]].tolist()) == expected
        assert set(classes[stream.validation[task]].tolist()) <= expected
        assert set(classes[stream.test[task]].tolist()) == expected


@pytest.mark.parametrize("heads", ["multi", "single"])
def test_a_label_is_the_place_in_the_class_order_seen_from_the_head(
    tiny: ImageData, heads: str
) -> None:
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    stream = split_stream(tiny, heads=heads, class_order=order)
    classes = torch.cat([tiny.train_y, tiny.test_y])
    for task in range(5):
        labels = stream.labels(task, "train")
        first = 0 if heads == "single" else 2 * task
        decoded = torch.tensor(order)[labels + first]
        assert torch.equal(decoded, classes[stream.rows(task, "train")])
        assert set(labels.tolist()) == set(stream.task_classes[task])
        assert stream.task_label(task) == (task if heads == "multi" else 0)
    assert stream.n_classes == (2 if heads == "multi" else 10)
    assert stream.multi_head is (heads == "multi")


def test_the_training_pixels_have_mean_0_and_standard_deviation_1(tiny: ImageData) -> None:
    stream = split_stream(tiny, validation=0.5)
    pixels = torch.cat([*stream.train, *stream.validation])
    pixels = stream.gather(pixels).double()
    assert pixels.mean().item() == pytest.approx(0, abs=1e-6)
    assert pixels.std(correction=0).item() == pytest.approx(1, abs=1e-6)


def test_test_pixels_are_scaled_by_the_moments_of_the_training_set(tiny: ImageData) -> None:
    stream = split_stream(tiny)
    train, test = tiny.train_x.double(), tiny.test_x.double()
    expected = (test - train.mean()) / train.std(correction=0)
    torch.testing.assert_close(stream.x[len(train) :].double(), expected.flatten(1))


@pytest.mark.parametrize("heads", ["multi", "single"])
def test_with_first_task_statistics_nothing_of_later_tasks_is_in_any_input(
    tiny: ImageData, heads: str
) -> None:
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    settings = {"heads": heads, "class_order": order, "statistics": "first-task"}
    stream = split_stream(tiny, validation=0.2, **settings)
    first = torch.isin(tiny.train_y, torch.tensor(order[:2]))
    known = tiny.train_x[first].double()
    assert len(known) == 40  # those that are held out too
    expected = (torch.cat([tiny.train_x, tiny.test_x]).double() - known.mean()) / known.std(
        correction=0
    )
    torch.testing.assert_close(stream.x.double(), expected.flatten(1))
    brighter = tiny.train_x.clone()
    brighter[~first] = 255
    other = split_stream(replace(tiny, train_x=brighter), **settings)
    assert torch.equal(other.inputs(0, "test"), stream.inputs(0, "test"))


def test_a_first_task_of_one_shade_is_reported(tiny: ImageData) -> None:
    dark = torch.where((tiny.train_y < 2)[:, None, None], 9, tiny.train_x)
    with data_fails("tiny"):
        split_stream(replace(tiny, train_x=dark), statistics="first-task")
    split_stream(replace(tiny, train_x=dark))


def test_an_unflattened_stream_has_the_same_pixels_as_images(tiny: ImageData) -> None:
    images = split_stream(tiny, flatten=False)
    assert images.inputs(1, "test").shape == (8, 1, 4, 3)
    flat = split_stream(tiny).inputs(1, "test")
    assert torch.equal(images.inputs(1, "test").flatten(1), flat)


def test_the_validation_split_depends_on_its_seed_alone(tiny: ImageData) -> None:
    torch.manual_seed(1)
    first = split_stream(tiny, seed=3)
    torch.manual_seed(2)
    second = split_stream(tiny, seed=3)
    other = split_stream(tiny, seed=4)
    pairs = zip(first.validation, second.validation, strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not all(
        torch.equal(a, b) for a, b in zip(first.validation, other.validation, strict=True)
    )


def test_the_validation_share_is_held_out_of_each_task(tiny: ImageData) -> None:
    stream = split_stream(tiny, validation=0.1)
    assert [len(rows) for rows in stream.validation] == [4] * 5
    assert [len(rows) for rows in stream.train] == [36] * 5
    whole = split_stream(tiny, validation=0)
    assert [len(rows) for rows in whole.validation] == [0] * 5
    assert whole.inputs(0, "validation").shape == (0, 12)


def test_split_fashion_mnist_has_10800_1200_and_2000_images_per_task(real_data: Path) -> None:
    stream = split_stream(load_dataset("fashion-mnist", real_data))
    for task in range(5):
        sizes = [len(stream.labels(task, part)) for part in ("train", "validation", "test")]
        assert sizes == [10_800, 1_200, 2_000]
    assert stream.task_names[0] == "T-shirt/top, Trouser"
    assert torch.cat([*stream.train, *stream.validation]).unique().numel() == 60_000
    training = stream.x[:60_000]
    assert training.mean(dtype=torch.float64).item() == pytest.approx(0, abs=1e-5)
    assert training.square().mean(dtype=torch.float64).item() == pytest.approx(1, abs=1e-5)


def test_split_notmnist_has_the_tasks_of_vcl(real_data: Path) -> None:
    settings = catalogue.load("benchmark", "split-notmnist-multi-head").table["stream"]
    stream = build_stream(settings, real_data)
    assert stream.task_names == ("A, F", "B, G", "C, H", "D, I", "E, J")
    assert [len(stream.labels(task, "test")) for task in range(5)] == [624] * 5
    sizes = [len(rows) for rows in stream.train]
    assert sum(sizes) + sum(map(len, stream.validation)) == 15_604


@pytest.mark.parametrize(
    ("setting", "key", "named"),
    [
        ({"tasks": 3}, "tasks", [3, "1, 2, 5, 10"]),
        ({"tasks": 0}, "tasks", [0]),
        ({"tasks": 10}, "tasks", ["one class", "heads"]),
        ({"heads": "mutli"}, "heads", ["mutli", "multi"]),
        ({"class_order": [0, 1, 2]}, "class_order", []),
        ({"class_order": [0, 0, 2, 3, 4, 5, 6, 7, 8, 9]}, "class_order", []),
        ({"class_order": ["0", *range(1, 10)]}, "class_order", []),
        ({"class_order": 3}, "class_order", []),
        ({"class_order": "seed"}, "class_order", []),
        ({"statistics": "first"}, "statistics", ["first-task"]),
        ({"validation": 1.0}, "validation", []),
        ({"validation": "a"}, "validation", []),
        ({"validation": 0.001}, "validation", ["40 training and 0 validation"]),
        ({"validation": 0.999}, "validation", ["0 training and 40 validation"]),
        ({"seed": -1}, "split_seed", [-1]),
    ],
)
def test_a_setting_that_does_not_fit_is_named(
    tiny: ImageData, setting: dict[str, object], key: str, named: list[object]
) -> None:
    with fails(key, *named):
        split_stream(tiny, **setting)


def test_images_of_one_shade_are_reported(tiny: ImageData) -> None:
    blank = replace(tiny, train_x=torch.full_like(tiny.train_x, 9))
    with data_fails("tiny"):
        split_stream(blank)


def test_a_task_without_test_images_is_reported(tiny: ImageData) -> None:
    kept = tiny.test_y < 8
    fewer = replace(tiny, test_x=tiny.test_x[kept], test_y=tiny.test_y[kept])
    with data_fails("tiny", "class 8, class 9"):
        split_stream(fewer)


@pytest.mark.parametrize(
    ("field", "change", "words"),
    [
        ("x", lambda s: s.x.double(), "torch.float64"),
        ("y", lambda s: s.y.int(), "torch.int32"),
        ("y", lambda s: s.y[:-1], "shape"),
        ("y", lambda s: s.y + 1, "1 to 10"),
        ("test", lambda s: s.test[:-1], "5 tasks"),
        ("train", lambda s: tuple(r.tolist() for r in s.train), "list"),
        ("train", lambda s: (s.train[0] + 10_000, *s.train[1:]), "row numbers"),
        ("task_names", lambda s: s.task_names[1:], "entry"),
    ],
)
def test_a_users_stream_is_checked_when_it_is_made(
    tiny: ImageData, field: str, change, words: str
) -> None:
    stream = split_stream(tiny, heads="single")
    with fails(f"stream {stream.name!r}", field, words):
        replace(stream, **{field: change(stream)})
