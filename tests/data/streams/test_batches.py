import pytest
import torch

from vcl_radial.data.streams import TensorBatches


def rows(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs, labels and task labels that all tell the row they belong to."""
    row = torch.arange(n)
    return row.float().unsqueeze(1).repeat(1, 3), row, row + 1000


def assert_aligned(batch: list[torch.Tensor]) -> None:
    x, y, t = batch
    assert torch.equal(x, y.float().unsqueeze(1).repeat(1, 3))
    assert torch.equal(t, y + 1000)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("n", "batch_size"), [(10, 4), (12, 4), (3, 4), (1, 1), (0, 4)])
def test_the_batches_of_an_epoch_are_a_permutation_of_the_rows(
    shuffle: bool, n: int, batch_size: int
) -> None:
    batches = TensorBatches(*rows(n), batch_size, shuffle=shuffle)
    epoch = list(batches)
    assert len(epoch) == len(batches)
    for batch in epoch:
        assert_aligned(batch)
    seen = [label for batch in epoch for label in batch[1].tolist()]
    assert sorted(seen) == list(range(n))
    if not shuffle:
        assert seen == list(range(n))
    assert [len(batch[1]) for batch in epoch[:-1]] == [batch_size] * (len(epoch) - 1)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("n", "left"), [(10, 8), (12, 12), (3, 0)])
def test_drop_last_drops_only_the_remainder(shuffle: bool, n: int, left: int) -> None:
    batches = TensorBatches(*rows(n), 4, shuffle=shuffle, drop_last=True)
    epoch = list(batches)
    assert len(epoch) == len(batches)
    assert all(len(batch[1]) == 4 for batch in epoch)
    assert len({label for batch in epoch for label in batch[1].tolist()}) == left


def test_equal_generators_give_equal_batches_and_epochs_differ() -> None:
    first, second = (
        TensorBatches(*rows(50), 8, True, generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    )
    epochs = []
    for _ in range(2):
        ours, theirs = list(first), list(second)
        for a, b in zip(ours, theirs, strict=True):
            assert all(torch.equal(p, q) for p, q in zip(a, b, strict=True))
        epochs.append(torch.cat([batch[1] for batch in ours]))
    assert not torch.equal(*epochs)


def test_an_own_generator_leaves_the_global_one_alone() -> None:
    before = torch.get_rng_state()
    list(TensorBatches(*rows(50), 8, True, generator=torch.Generator().manual_seed(3)))
    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_generator_the_global_seed_decides() -> None:
    orders = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        orders.append(torch.cat([batch[1] for batch in TensorBatches(*rows(50), 8, True)]))
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])


def test_tensors_of_different_length_are_refused() -> None:
    x, y, t = rows(5)
    with pytest.raises(ValueError, match="5, 4 and 5 rows"):
        TensorBatches(x, y[:-1], t, 2)


def test_an_empty_batch_size_is_refused() -> None:
    with pytest.raises(ValueError, match="batch_size = 0"):
        TensorBatches(*rows(5), 0)
