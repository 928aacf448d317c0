import pytest
import torch
from failing import fails

from vcl_radial.data.streams import ImageData, permuted_stream, split_stream


def test_the_first_task_is_not_permuted(tiny: ImageData) -> None:
    stream = permuted_stream(tiny, tasks=3)
    assert stream.task_names[0] == "unpermuted"
    assert torch.equal(stream.inputs(0, "test"), split_stream(tiny).x[len(tiny.train_y) :])


def test_the_first_of_permuted_tasks_has_the_statistics_of_all(tiny: ImageData) -> None:
    stream = permuted_stream(tiny, tasks=2, statistics="first-task")
    assert torch.equal(stream.x, permuted_stream(tiny, tasks=2).x)


def test_each_later_task_is_a_permutation_of_the_pixels_other_than_the_others(
    tiny: ImageData,
) -> None:
    stream = permuted_stream(tiny, tasks=4)
    first = stream.inputs(0, "train")
    for task in range(1, 4):
        inputs = stream.inputs(task, "train")
        assert torch.equal(inputs.sort(dim=1).values, first.sort(dim=1).values)
        assert not any(torch.equal(inputs, stream.inputs(t, "train")) for t in range(task))


def test_one_permutation_serves_all_images_of_a_task(tiny: ImageData) -> None:
    stream = permuted_stream(tiny, tasks=2)
    plain, permuted = stream.inputs(0, "train"), stream.inputs(1, "train")
    # Over 180 random images the columns differ, so each has one partner.
    partner = [c for j in range(12) for c in range(12) if torch.equal(plain[:, c], permuted[:, j])]
    assert sorted(partner) == list(range(12))
    assert torch.equal(stream.inputs(0, "test")[:, partner], stream.inputs(1, "test"))


def test_all_tasks_have_the_same_labels_and_hold_out_the_same_images(tiny: ImageData) -> None:
    stream = permuted_stream(tiny, tasks=3)
    n = len(stream.x)
    for task in range(3):
        assert torch.equal(stream.labels(task, "train"), stream.labels(0, "train"))
        assert torch.equal(stream.rows(task, "validation") % n, stream.rows(0, "validation"))
        images = torch.cat([stream.train[task], stream.validation[task]]) - task * n
        assert torch.equal(images.sort().values, torch.arange(len(tiny.train_y)))


def test_rows_of_several_tasks_are_gathered_each_as_its_task_sees_it(tiny: ImageData) -> None:
    stream = permuted_stream(tiny, tasks=3)
    rows = torch.cat(stream.train)
    blocks = torch.cat([stream.inputs(task, "train") for task in range(3)])
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    assert len(rows) > 256  # more than one piece
    assert torch.equal(stream.gather(rows[order]), blocks[order])


def test_permutations_depend_on_the_seed_and_neither_on_tasks_nor_on_validation(
    tiny: ImageData,
) -> None:
    stream = permuted_stream(tiny, tasks=3, seed=5)
    longer = permuted_stream(tiny, tasks=6, seed=5, validation=0.3)
    other = permuted_stream(tiny, tasks=3, seed=6)
    assert torch.equal(stream.inputs(2, "test"), longer.inputs(2, "test"))
    assert not torch.equal(stream.inputs(2, "test"), other.inputs(2, "test"))


def test_heads_and_image_shape_are_the_settings(tiny: ImageData) -> None:
    single = permuted_stream(tiny, tasks=3, flatten=False)
    assert single.inputs(2, "test").shape == (40, 1, 4, 3)
    assert (single.multi_head, single.n_classes, single.task_label(2)) == (False, 10, 0)
    multi = permuted_stream(tiny, tasks=3, heads="multi")
    assert (multi.multi_head, multi.n_classes, multi.task_label(2)) == (True, 10, 2)
    assert torch.equal(single.inputs(2, "test").flatten(1), multi.inputs(2, "test"))


def test_only_the_last_training_inputs_are_kept(tiny: ImageData) -> None:
    stream = permuted_stream(tiny, tasks=3)
    test = stream.inputs(0, "test")
    train = stream.inputs(0, "train")
    assert stream.inputs(0, "train") is train
    stream.inputs(1, "train")
    assert stream.inputs(0, "train") is not train
    assert stream.inputs(0, "test") is test


def test_an_empty_list_of_rows_gives_no_inputs(tiny: ImageData) -> None:
    stream = permuted_stream(tiny, tasks=2, validation=0)
    assert stream.inputs(1, "validation").shape == (0, 12)


@pytest.mark.parametrize("setting", [{"tasks": 0}, {"heads": "both"}, {"validation": -0.1}])
def test_a_setting_that_is_not_valid_is_named(tiny: ImageData, setting: dict[str, object]) -> None:
    with fails(next(iter(setting))):
        permuted_stream(tiny, **setting)
