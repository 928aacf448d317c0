"""Export a kept model as ONNX or by `torch.export`: from raw inputs to probabilities."""

from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vcl_radial.errors import UserError, bad_value
from vcl_radial.files import atomic
from vcl_radial.methods.base import Method
from vcl_radial.models.ensemble import Ensemble
from vcl_radial.models.model import Model
from vcl_radial.system.quiet import quiet

aten = torch.ops.aten

_LARGEST_ONNX = 2**31 - 2**20
"""Largest size of the tensors of an ONNX file in bytes."""


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
        draws: K, for probabilities `[K, N, C]` under the draws of `Model.draws`, which are a single
            one where the predictive has a closed form; None for `[N, C]` at the means of the
            weights.

    Raises:
        UserError: the file has another ending or cannot be written, a package is missing, the
            method does not predict by tensor operations alone, or ONNX lacks one of them.
    """
    if to.suffix not in (".onnx", ".pt2"):
        raise UserError("must end in .onnx or .pt2", at=to)
    traced = program(model, task, draws)
    head = model.classes[model.head(None if task is None else model.number(task))]
    x = torch.zeros(2, *model.card["input"]["shape"])
    sizes = ({0: torch.export.Dim("inputs")},)
    if to.suffix == ".onnx":
        content = _onnx(traced, x, sizes, head)
    else:
        file = io.BytesIO()
        exported = torch.export.export(traced, (x,), dynamic_shapes=sizes)
        with quiet():
            torch.export.save(exported, file, extra_files={"classes.json": json.dumps(head)})
        content = file.getvalue()
    try:
        atomic.write(to, content)
    except OSError as error:
        raise atomic.not_written(to, error) from None


def _onnx(traced: nn.Module, x: Tensor, sizes: Any, classes: Sequence[str]) -> bytes:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise UserError(
            "an ONNX file needs onnx and onnxscript: pip install vcl-radial[export], or name a "
            ".pt2 file"
        ) from None
    if sum(t.nbytes for t in traced.buffers()) >= _LARGEST_ONNX:
        raise UserError("the model is too large for an ONNX file, which holds 2 GB: name a .pt2")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with quiet():
            exported = torch.onnx.export(
                traced,
                (x,),
                dynamo=True,
                dynamic_shapes=sizes,
                input_names=["x"],
                output_names=["probabilities"],
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        raise UserError("ONNX lacks an operation of this model: name a .pt2 file") from error
    assert exported is not None
    exported.model.metadata_props["classes"] = json.dumps(classes)
    content: bytes = exported.model_proto.SerializeToString()
    return content


def program(model: Model, task: int | str | None, draws: int | None) -> nn.Module:
    """Probabilities as tensor operations on raw inputs `[N, ...]` and constants; see `export`.

    Weights, masks and roots of matrices do not depend on the inputs, so that they are computed
    here, by the method's own code, and the program holds their values.

    Raises:
        UserError: there is no such task, or the method's predictions cannot be traced.
    """
    method = model.method
    if isinstance(model, Ensemble):
        raise UserError("an export is of one seed: name the folder of a run")
    if task is None and len(model.classes) > 1:
        raise bad_value(
            "task", task, f"must be one of 0 to {len(model.tasks) - 1}: each has a head"
        )
    number = None if task is None else model.number(task)
    head = model.head(number)

    def probabilities(x: Tensor) -> Tensor:
        with _Constants():  # type: ignore[no-untyped-call]
            x = model.scaled(x)
            if draws is not None:
                log_p = model.log_probabilities(method.draws(x, head, samples=draws))
            else:
                log_p = model.log_probabilities(method.outputs_at_means(x, head))
                log_p = log_p.logsumexp(0) - math.log(len(log_p))
            return log_p.exp().float()

    device = method.device
    try:
        model.to("cpu")
        with torch.no_grad(), method.using(method.predictor(number)):
            traced = make_fx(probabilities)(_of_any_number(model))
            x = torch.rand(5, *model.card["input"]["shape"])
            # A trace holds what Python's `len` said of its own inputs.
            is_of_any_number = torch.allclose(traced(x), probabilities(x), atol=1e-4)
    except (RuntimeError, TypeError) as error:
        raise _not_traced(method) from error
    finally:
        model.to(device)
    if not is_of_any_number:
        raise _not_traced(method)
    constants = {node.target for node in traced.graph.nodes if node.op == "get_attr"}
    for name in constants:  # copies, because the trace holds parts of the model's own tensors
        value = getattr(traced, name).detach().clone()
        delattr(traced, name)
        traced.register_buffer(name, value)
    return traced.eval()


def _not_traced(method: Method) -> UserError:
    return UserError(
        f"{type(method).__name__} does not predict by tensor operations alone, which an export "
        "needs: use vcl-radial predict"
    )


def _of_any_number(model: Model) -> Tensor:
    """Inputs without values, `[N, ...]` with a symbol for N."""
    x = torch.zeros(3, *model.card["input"]["shape"])
    sizes = [DimDynamic.DYNAMIC, *[DimDynamic.STATIC] * (x.dim() - 1)]
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    return mode.from_tensor(x, symbolic_context=StatelessSymbolicContext(sizes))


class _Constants(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Compute what does not depend on the inputs; what does is left to the trace around it."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        parts = tree_leaves((args, kwargs))
        if not any(isinstance(part, FakeTensor | torch.SymInt) for part in parts):
            with disable_proxy_modes_tracing():
                return func(*args, **kwargs)
        if func is aten.linalg_solve_triangular.default and not isinstance(args[0], FakeTensor):
            return self._inverse(args[0], **kwargs) @ args[1]
        if func is aten.split.Tensor and isinstance(args[0].shape[0], torch.SymInt):
            return [aten.alias.default(args[0])]  # parts of the inputs spare memory alone
        if func is aten._cdist_forward.default:
            return (args[0][:, None] - args[1]).square().sum(-1).sqrt()
        return func(*args, **kwargs)

    def _inverse(self, root: Tensor, *, upper: bool) -> Tensor:
        """The inverse of a triangular matrix: ONNX cannot solve for it."""
        with disable_proxy_modes_tracing():
            eye = torch.eye(len(root), dtype=root.dtype)
            inverse: Tensor = torch.linalg.solve_triangular(root, eye, upper=upper)
            return inverse
