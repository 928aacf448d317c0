"""The model that a run on a task sequence keeps, and its way back from the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import nn

from vcl_radial.data.streams import TensorStream
from vcl_radial.models.format import training_points
from vcl_radial.models.model import Model
from vcl_radial.nn import SingleHead
from vcl_radial.tracks.continual.methods import by_avalanche, method_of
from vcl_radial.tracks.continual.networks import make_network
from vcl_radial.tracks.continual.progress import TaskRun
from vcl_radial.tracks.continual.settings import Run
from vcl_radial.tracks.continual.training import task_seed
from vcl_radial.training.seeds import drawing_from


def kept(training: TaskRun) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The card and the state of a finished run; None where Avalanche's loop trained it."""
    if by_avalanche(training.recipe):
        return None
    stream, state = training.stream, training.trainer.states[-1]
    tasks = range(stream.n_tasks)
    card = {
        "input": {
            "shape": list(stream.x.shape[1:]),
            "scaling": stream.scaling,
            "permuted": stream.permutations is not None,
            "lowest": _lowest(stream),
        },
        "tasks": [
            {
                "name": stream.task_names[t],
                "head": stream.task_label(t),
                "outputs": list(stream.task_classes[t]),
            }
            for t in tasks
        ],
        "heads": output_names(stream),
        "multi_head": stream.multi_head,
        "grown": grown_outputs(training.method.network),
        "training_points": training_points(state),
    }
    return card, state


def output_names(stream: TensorStream) -> list[list[str]]:
    """The names of the outputs of each head, which differ: a class, or the number of the output."""
    names = stream.class_names or tuple(tuple(map(str, classes)) for classes in stream.task_classes)
    heads: dict[int, dict[int, str]] = {}
    for task in range(stream.n_tasks):
        head = heads.setdefault(stream.task_label(task), {})
        head |= zip(stream.task_classes[task], names[task], strict=True)
    # Classes of an update may be called 8 and 9, and have the outputs 4 and 5.
    taken = [{*head.values()} for head in heads.values()]
    return [
        [
            head.get(number, f"output {number}" if str(number) in known else str(number))
            for number in range(stream.n_classes)
        ]
        for head, known in zip(heads.values(), taken, strict=True)
    ]


def grown_outputs(network: nn.Module) -> list[int]:
    """The numbers of outputs that were added to the one head, in order."""
    head = getattr(network, "head", None)
    layers = head.grown if isinstance(head, SingleHead) else ()
    return [cast(int, layer.out_features) for layer in layers]


def _lowest(stream: TensorStream) -> float | None:
    """The smallest number of the raw inputs, to three decimals."""
    if stream.scaling is None:
        return None
    m, s = stream.scaling
    return round(float(stream.x.min()) * s + m, 3) + 0.0


def restored(run: Run, card: Mapping[str, Any], state: dict[str, Any]) -> Model:
    """The model of a folder; the method is made as at the start of the run, without its data.

    Raises:
        UserError: the method cannot be made, or the state does not fit it.
    """
    outputs, shape = len(card["heads"][0]), card["input"]["shape"]
    empty = TensorStream(
        name=run.benchmark,
        x=torch.zeros(1, *shape),
        y=torch.zeros(1, dtype=torch.int64),
        train=(),
        validation=(),
        test=(),
        task_names=(),
        task_classes=(),
        n_classes=outputs,
        multi_head=card["multi_head"],
    )
    with drawing_from(task_seed(run.seed, 0), torch.device("cpu")):
        network = make_network(empty, run.recipe, card.get("grown", []))
        method = method_of(run.recipe, network)
    method.load_state_dict(state)
    return Model(card, method)
