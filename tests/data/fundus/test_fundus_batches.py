from dataclasses import replace

import numpy as np
import pytest
import torch
from failing import fails
from fundus_helpers import table

from vcl_radial.data.fundus import (
    Augmentation,
    Normalisation,
    TrainingBatches,
    evaluation_batches,
    load_pixels,
)

PLAIN = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


@pytest.fixture
def data(cache):
    return load_pixels(table(patients=11), 12, jobs=1, report=lambda line: None)


def batches(data, rows=range(22), batch_size=5, **options):
    options = {"normalisation": PLAIN, **options}
    return TrainingBatches(data, list(rows), batch_size, **options)


def equal(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_the_training_set_gets_mean_0_and_variance_1(data, monkeypatch):
    from vcl_radial.data.fundus import batches as module

    monkeypatch.setattr(module, "_CHUNK", 4)
    rows = [0, 3, 4, 9, 12, 17, 20]
    normalisation = Normalisation.fit(data, rows)
    exact = data.images(rows).double() / 255
    assert normalisation.mean == pytest.approx(exact.mean((0, 2, 3)).tolist(), rel=1e-12)
    std = exact.std((0, 2, 3), correction=0).tolist()
    assert normalisation.std == pytest.approx(std, rel=1e-9)
    x = normalisation(data.images(rows))
    assert x.mean((0, 2, 3)).abs().max() < 1e-5
    assert (x.std((0, 2, 3), correction=0) - 1).abs().max() < 1e-5


def test_every_batch_of_an_epoch_is_changed_anew(cache):
    pictures = table(patients=4)
    for name in pictures.reader.pictures:  # the same picture for all
        pictures.reader.pictures[name] = pictures.reader.pictures["00_left"]
    same = load_pixels(pictures, 12, jobs=1, report=lambda line: None)
    made = batches(same, range(8), 2, augmentation=Augmentation())
    images = torch.cat([batch.x for batch in made.epoch(0)])
    assert len(images.flatten(1).unique(dim=0)) == 8


def test_a_channel_that_is_the_same_everywhere_becomes_0(data):
    constant = replace(data, _pixels=np.full_like(data._pixels, 40))
    normalisation = Normalisation.fit(constant, range(5))
    assert normalisation(constant.images(range(5))).abs().max() < 1e-6


def test_photographs_without_a_grade_are_not_trained_on(data):
    rows = [
        replace(row, grade=-1) if k == 3 else row for k, row in enumerate(data.photographs.rows)
    ]
    data = replace(data, photographs=replace(data.photographs, rows=tuple(rows)))
    assert data.classes()[3] == -1
    assert len(batches(data, [0, 1, 2, 4], 2))
    with fails("noise", "grade"):
        batches(data, [0, 1, 2, 3], 2)


def test_an_epoch_has_no_row_twice(data):
    rows = [k for k in range(22) if k % 4]
    made = batches(data, rows)
    epoch = list(made.epoch(0))
    seen = torch.cat([batch.rows for batch in epoch]).tolist()
    assert len(epoch) == len(made) == 3
    assert len(seen) == len(set(seen)) == 15
    assert set(seen) <= set(rows)
    for x, y, chosen in epoch:
        torch.testing.assert_close(x, data.images(chosen).float() / 255)
        assert y.tolist() == [int(data.photographs.rows[k].grade >= 2) for k in chosen]


def test_epochs_differ_and_follow_from_the_seed(data):
    def order(seed, epoch):
        return [k for batch in batches(data, seed=seed).epoch(epoch) for k in batch.rows.tolist()]

    assert order(0, 1) == order(0, 1)
    assert order(0, 1) != order(0, 2)
    assert order(0, 1) != order(1, 1)


def test_a_run_that_goes_on_sees_the_same_batches(data):
    epochs = []
    for _ in range(2):
        epochs.append(list(batches(data, augmentation=Augmentation(), seed=4).epoch(3)))
        torch.randn(7)
    assert all(equal(a, b) for a, b in zip(*epochs, strict=True))


def test_batches_leave_the_global_generators_alone(data):
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    list(batches(data, augmentation=Augmentation()).epoch(0))
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(numpy_before, np.random.get_state()[1])


def test_an_image_is_changed_anew_in_every_epoch(data):
    made = batches(data, rows=range(5), augmentation=Augmentation())

    def image(epoch):
        (batch,) = made.epoch(epoch)
        return batch.x[batch.rows == 2]

    assert not torch.allclose(image(0), image(1))


@pytest.mark.parametrize("world", [2, 3])
def test_processes_share_the_batches_of_one(data, world):
    options = {"augmentation": Augmentation(), "seed": 2}
    alone = list(batches(data, **options).epoch(1))
    shared = [list(batches(data, share=(k, world), **options).epoch(1)) for k in range(world)]
    for whole, *parts in zip(alone, *shared, strict=True):
        for field in range(3):
            joined = torch.cat([part[field] for part in parts])
            torch.testing.assert_close(joined, whole[field])


def test_evaluation_has_every_row_in_order_and_unchanged(data):
    rows = [7, 3, 15, 0, 21]
    normalisation = Normalisation.fit(data, rows)
    found = list(evaluation_batches(data, rows, 2, normalisation=normalisation))
    assert torch.cat([batch.rows for batch in found]).tolist() == rows
    expected = normalisation(data.images(rows))
    assert torch.equal(torch.cat([batch.x for batch in found]), expected)


def test_batches_that_cannot_be_are_refused(data):
    with fails("batch_size", 23, 22):
        batches(data, batch_size=23)
    with fails("batch_size", 8):
        batches(data, share=(0, 8))
