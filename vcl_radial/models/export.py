"""Export a kept model as ONNX or by `torch.export`: from raw inputs to probabilities."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from vcl_radial.errors import UserError, bad_value
from vcl_radial.files import atomic
from vcl_radial.methods.base import Method
from vcl_radial.models.ensemble import Ensemble
from vcl_radial.models.model import Model
from vcl_radial.nn.grouping import Layer
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.system.quiet import quiet


def export(
    model: Model, to: Path, *, task: int | str | None = None, draws: int | None = None
) -> None:
    """Write a program that maps raw inputs `x` `[N, ...]` float32 to probabilities of classes.

    The names of the classes stand in the file: in the metadata of an ONNX model, or in
    `classes.json` of a `.pt2`.

    Args:
        model: the model of one seed.
        to: the file, .onnx or .pt2.
        task: number (from 0) or name of the task; needed where tasks have their own heads.
        draws: K, for probabilities `[K, N, C]` under the draws of `Model.draws`; None for `[N, C]`
            at the means of the weights.

    Raises:
        UserError: the file has another ending or cannot be written, a package is missing, or the
            method predicts by more than draws of a network's weights.
    """
    if to.suffix not in (".onnx", ".pt2"):
        raise UserError("must end in .onnx or .pt2", at=to)
    program = Program(model, task, draws).eval()
    head = model.classes[model.head(program.number)]
    x = torch.zeros(2, *model.card["input"]["shape"])
    sizes = {"x": {0: torch.export.Dim("inputs")}}
    if to.suffix == ".onnx":
        content = _onnx(program, x, sizes, head)
    else:
        file = io.BytesIO()
        exported = torch.export.export(program, (x,), dynamic_shapes=sizes)
        torch.export.save(exported, file, extra_files={"classes.json": json.dumps(head)})
        content = file.getvalue()
    try:
        atomic.write(to, content)
    except OSError as error:
        raise atomic.not_written(to, error) from None


def _onnx(program: nn.Module, x: Tensor, sizes: dict[str, Any], classes: Sequence[str]) -> bytes:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise UserError(
            "an ONNX file needs onnx and onnxscript: pip install vcl-radial[export], or name a "
            ".pt2 file"
        ) from None
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with quiet():
        exported = torch.onnx.export(
            program,
            (x,),
            dynamo=True,
            dynamic_shapes=sizes,
            input_names=["x"],
            output_names=["probabilities"],
            verbose=False,
        )
    assert exported is not None
    exported.model.metadata_props["classes"] = json.dumps(classes)
    content: bytes = exported.model_proto.SerializeToString()
    return content


class Program(nn.Module):
    """Probabilities from raw inputs under fixed weights; see `export`.

    Raises:
        UserError: there is no such task, or the method predicts by more than draws of weights.
    """

    def __init__(self, model: Model, task: int | str | None, draws: int | None) -> None:
        super().__init__()
        method = model.method
        if isinstance(model, Ensemble):
            raise UserError("an export is of one seed: name the folder of a run")
        for name in ("output", "draws"):
            if getattr(type(method), name) is not getattr(Method, name):
                raise UserError(
                    f"{type(method).__name__} does not predict by draws of a network's weights, "
                    "which an export needs: use vcl-radial predict"
                )
        if task is None and len(model.classes) > 1:
            raise bad_value(
                "task", task, f"must be one of 0 to {len(model.tasks) - 1}: each has a head"
            )
        self.number = None if task is None else model.number(task)
        self._model, self._with_draws = model, draws is not None
        self._arguments = [model.head(self.number)] if method.with_task else []
        self.turns = draws or 1
        with method.using(method.predictor(self.number)):
            network = method.network
            weights = _means(network) if draws is None else _drawn(model, self.number, draws)
            self.network = deepcopy(network).cpu()
        self._fixed = []
        for name, layers in weights.items():
            fixed = _Fixed(layers)
            parent, _, attribute = name.rpartition(".")
            setattr(self.network.get_submodule(parent), attribute, fixed)
            self._fixed.append(fixed)
        for parameter in self.network.parameters():
            parameter.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities `[K, N, C]`, or `[N, C]` at the means."""
        x = self._model.scaled(x)
        outputs = []
        for turn in range(self.turns):
            for fixed in self._fixed:
                fixed.turn = turn
            outputs.append(self.network(x, *self._arguments))
        probabilities = self._model.log_probabilities(torch.stack(outputs)).exp()
        return probabilities if self._with_draws else probabilities[0]


class _Fixed(nn.Module):
    """Weights of a layer under K draws, in place of its posterior; `turn` chooses the draw."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, layers: Sequence[Layer]) -> None:
        super().__init__()
        self.turn = 0
        weights, biases = zip(*layers, strict=True)
        self.shape = weights[0].shape
        self.register_buffer("weight", torch.stack(weights).cpu())
        self.register_buffer("bias", None if biases[0] is None else torch.stack(biases).cpu())

    def sample(self) -> Layer:
        """The weight `[out, ...]` and the bias `[out]` or None."""
        return self.weight[self.turn], None if self.bias is None else self.bias[self.turn]


def _layers(network: nn.Module) -> dict[str, VariationalWeights]:
    return {n: m for n, m in network.named_modules() if isinstance(m, VariationalWeights)}


@torch.no_grad()
def _means(network: nn.Module) -> dict[str, list[Layer]]:
    return {name: [layer.mean()] for name, layer in _layers(network).items()}


@torch.no_grad()
def _drawn(model: Model, number: int | None, draws: int) -> dict[str, list[Layer]]:
    """The weights that `Model.draws` draws, by layer: it is called once, and they are recorded."""
    method = model.method
    with ExitStack() as stack:
        drawn: dict[str, list[Layer]] = {}
        for name, layer in _layers(method.network).items():
            stack.enter_context(
                mock.patch.object(layer, "sample", _recorder(layer, drawn.setdefault(name, [])))
            )
        x = torch.zeros(1, *model.card["input"]["shape"], device=method.device)
        method.draws(x, model.head(number), samples=draws)
    return {name: layers for name, layers in drawn.items() if layers}


def _recorder(layer: VariationalWeights, record: list[Layer]) -> Any:
    sample = layer.sample

    def recorded() -> Layer:
        record.append(sample())
        return record[-1]

    return recorded
