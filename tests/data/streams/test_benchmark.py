"""The Avalanche side: benchmarks, and strategies that load from whole tensors."""

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from vcl_radial.data.streams import (
    ImageData,
    TensorBatches,
    TensorLoading,
    TensorStream,
    load_dataset,
    permuted_stream,
    split_stream,
    to_avalanche,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from avalanche.benchmarks.utils import AvalancheDataset, concat_datasets
    from avalanche.benchmarks.utils.data_attribute import TaskLabels
    from avalanche.benchmarks.utils.transform_groups import TransformGroups
    from avalanche.evaluation.metrics import accuracy_metrics
    from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
    from avalanche.training.supervised import Cumulative, Naive


PARTS = {"train": "train", "valid": "validation", "test": "test"}


class FastNaive(TensorLoading, Naive):
    pass


class FastCumulative(TensorLoading, Cumulative):
    pass


@pytest.fixture(params=["split multi", "split single", "permuted multi", "permuted single"])
def stream(request: pytest.FixtureRequest, tiny: ImageData) -> TensorStream:
    kind, heads = request.param.split()
    if kind == "split":
        return split_stream(tiny, heads=heads)
    return permuted_stream(tiny, tasks=3, heads=heads)


def strategy(kind: type, stream: TensorStream, **options: Any) -> Any:
    torch.manual_seed(0)
    n_inputs = stream.x[0].numel()
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(n_inputs, 32), nn.ReLU(), nn.Linear(32, stream.n_classes)
    )
    settings: dict[str, Any] = {
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters(), lr=1e-2),
        "criterion": nn.CrossEntropyLoss(),
        "train_mb_size": 16,
        "eval_mb_size": 64,
        "train_epochs": 1,
        "evaluator": EvaluationPlugin(accuracy_metrics(experience=True), loggers=[]),
    }
    made = kind(**settings | options)
    made.tensor_stream = stream
    return made


def adapted(kind: type, stream: TensorStream, dataset: Any) -> Any:
    """A strategy about to load `dataset`, with `stream` as its tensors."""
    loading = strategy(kind, stream)
    loading.adapted_dataset = dataset
    return loading


def assert_rows_agree(loader: TensorBatches, dataset: Any) -> None:
    """Unshuffled batches equal the dataset's samples, one by one."""
    x, y, t = (torch.cat(parts) for parts in zip(*loader, strict=True))
    assert len(y) == len(dataset)
    for i in range(len(dataset)):
        sample = dataset[i]
        assert torch.equal(x[i], sample[0])
        assert (int(y[i]), int(t[i])) == (sample[1], sample[2])


def test_datasets_hold_the_samples_labels_and_task_labels_of_the_stream(
    stream: TensorStream,
) -> None:
    benchmark = to_avalanche(stream)
    assert set(benchmark.streams) == set(PARTS)
    for name, part in PARTS.items():
        experiences = benchmark.streams[name]
        assert len(experiences) == stream.n_tasks
        for task, experience in enumerate(experiences):
            label = stream.task_label(task)
            dataset = experience.dataset
            x, y = stream.inputs(task, part), stream.labels(task, part)
            assert len(dataset) == len(y)
            assert list(dataset.targets) == y.tolist()
            assert list(dataset.row) == stream.rows(task, part).tolist()
            for i in range(len(dataset)):
                assert torch.equal(dataset[i][0], x[i])
                assert dataset[i][1:] == [int(y[i]), label]


def test_experiences_know_their_task_and_classes(stream: TensorStream) -> None:
    benchmark = to_avalanche(stream)
    for task, experience in enumerate(benchmark.train_stream):
        assert experience.current_experience == task
        assert experience.task_labels == [stream.task_label(task)]
        assert experience.task_label == stream.task_label(task)
        assert experience.classes_in_this_experience == list(stream.task_classes[task])
        assert set(experience.dataset.task_set) == {stream.task_label(task)}


def test_a_stream_without_validation_has_no_valid_experiences(tiny: ImageData) -> None:
    benchmark = to_avalanche(split_stream(tiny, validation=0))
    assert set(benchmark.streams) == {"train", "test"}


def test_fast_batches_equal_the_samples_of_the_dataset(stream: TensorStream) -> None:
    dataset = to_avalanche(stream).train_stream[1].dataset
    loading = adapted(FastNaive, stream, dataset)
    loading.make_train_dataloader(shuffle=False)
    assert isinstance(loading.dataloader, TensorBatches)
    assert_rows_agree(loading.dataloader, dataset)
    loading.make_eval_dataloader()
    assert_rows_agree(loading.dataloader, dataset)


def test_rows_are_followed_through_subsets_and_concatenation(stream: TensorStream) -> None:
    first, second, _ = (e.dataset for e in to_avalanche(stream).train_stream[:3])
    order = torch.randperm(len(first), generator=torch.Generator().manual_seed(1))
    mixed = (
        first.subset(order[:20])
        .concat(second.subset(list(range(5, 17))))
        .subset(torch.arange(31, -1, -2))
    )
    joined = concat_datasets([mixed, second, first])
    assert len(mixed) == 16
    for dataset in (mixed, joined, joined.eval()):
        loading = adapted(FastNaive, stream, dataset)
        loading.make_train_dataloader(shuffle=False)
        assert isinstance(loading.dataloader, TensorBatches)
        assert_rows_agree(loading.dataloader, dataset)


def test_evaluation_tensors_are_kept_until_the_stream_changes(tiny: ImageData) -> None:
    stream = split_stream(tiny)
    experience = to_avalanche(stream).test_stream[0]
    loading = adapted(FastNaive, stream, experience.dataset.eval())
    loading.make_eval_dataloader()
    first = loading.dataloader.x
    loading.adapted_dataset = experience.dataset.eval()
    loading.make_eval_dataloader()
    assert loading.dataloader.x is first
    loading.tensor_stream = stream.to("cpu")
    loading.make_eval_dataloader()
    assert loading.dataloader.x is not first


def test_kept_evaluation_tensors_do_not_serve_a_copy_with_other_transforms_or_labels(
    tiny: ImageData,
) -> None:
    stream = split_stream(tiny)
    dataset = to_avalanche(stream).test_stream[0].dataset
    loading = adapted(FastNaive, stream, dataset)
    loading.make_eval_dataloader()
    first = loading.dataloader

    loading.adapted_dataset = dataset.replace_current_transform_group(lambda x: -x)
    loading.make_eval_dataloader()
    x = torch.cat([batch[0] for batch in loading.dataloader])
    assert torch.equal(x, -first.x)

    relabelled = TaskLabels([3] * len(dataset))
    loading.adapted_dataset = dataset.update_data_attribute("targets_task_labels", relabelled)
    loading.make_eval_dataloader()
    assert torch.equal(loading.dataloader.x, first.x)
    assert torch.equal(loading.dataloader.t, torch.full_like(first.t, 3))


def test_foreign_datasets_go_to_the_stock_loader(tiny: ImageData) -> None:
    stream = split_stream(tiny)
    ours = to_avalanche(stream).train_stream[0].dataset
    reordered = split_stream(tiny, class_order=[9, 8, 7, 6, 5, 4, 3, 2, 1, 0], heads="single")
    longer = permuted_stream(tiny, tasks=3)
    negated = AvalancheDataset(
        [ours], transform_groups=TransformGroups({"train": lambda x: -x, "eval": lambda x: x})
    )
    foreign = [
        to_avalanche(reordered).train_stream[0].dataset,
        to_avalanche(longer).train_stream[2].dataset,
        negated,
    ]
    for dataset in foreign:
        loading = adapted(FastNaive, stream, dataset)
        loading.make_train_dataloader()
        assert not isinstance(loading.dataloader, TensorBatches)
        assert sum(len(batch[1]) for batch in loading.dataloader) == len(dataset)
        loading.adapted_dataset = dataset.train()
        loading.make_eval_dataloader()
        assert not isinstance(loading.dataloader, TensorBatches)


def test_without_a_stream_the_stock_loader_is_used(tiny: ImageData) -> None:
    stream = split_stream(tiny)
    loading = adapted(FastNaive, stream, to_avalanche(stream).train_stream[0].dataset)
    loading.tensor_stream = None
    loading.make_train_dataloader()
    assert not isinstance(loading.dataloader, TensorBatches)
    loading.make_eval_dataloader()
    assert not isinstance(loading.dataloader, TensorBatches)


@pytest.mark.parametrize("kind", [Naive, FastNaive])
@pytest.mark.parametrize("replay", [False, True])
def test_a_stock_strategy_learns_the_digits_with_either_loader(kind: type, replay: bool) -> None:
    stream = split_stream(load_dataset("digits"), heads="single")
    benchmark = to_avalanche(stream)
    plugins = [ReplayPlugin(mem_size=100)] if replay else []
    trained = strategy(kind, stream, plugins=plugins, train_epochs=3)
    with warnings.catch_warnings(record=True):  # the plugin calls what Avalanche deprecates
        for experience in benchmark.train_stream[:2]:
            trained.train(experience)
    results = trained.eval(benchmark.test_stream[:2])
    old, new = (
        results[f"Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp00{task}"] for task in range(2)
    )
    assert new > 0.9
    # With one head the old classes are forgotten unless they are replayed.
    assert (old > 0.7) == replay


def test_both_loaders_train_to_the_same_parameters_and_accuracies_in_the_stored_order() -> None:
    stream = permuted_stream(load_dataset("digits"), tasks=2, heads="multi")
    benchmark = to_avalanche(stream)
    stock, fast = strategy(Naive, stream), strategy(FastNaive, stream)
    results = []
    for trained in (stock, fast):
        for experience in benchmark.train_stream:
            trained.train(experience, shuffle=False, drop_last=True)
        results.append(trained.eval(benchmark.test_stream))
    for ours, theirs in zip(fast.model.parameters(), stock.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert results[0] == results[1]
    assert any(key.startswith("Top1_Acc_Exp") for key in results[0])


def test_joint_training_sees_every_row_of_all_tasks_once(tiny: ImageData) -> None:
    stream = permuted_stream(tiny, tasks=2, heads="multi")
    trained = strategy(FastCumulative, stream)
    trained.shuffle_generator = torch.Generator().manual_seed(0)
    seen: list[tuple[int, int]] = []
    step = trained.training_epoch

    def spied(**kwargs: Any) -> None:
        batches = list(trained.dataloader)
        seen.extend((int(t), int(y)) for _, ys, ts in batches for y, t in zip(ys, ts, strict=True))
        step(**kwargs)

    trained.training_epoch = spied
    benchmark = to_avalanche(stream)
    trained.train(benchmark.train_stream[0])
    seen.clear()
    trained.train(benchmark.train_stream[1])
    expected = [(t, int(y)) for t in range(2) for y in stream.labels(t, "train")]
    assert sorted(seen) == sorted(expected)
