"""Checkpoints with the right checksum whose tensors are not those that were stored."""

import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from children import fork
from damage import STAMP
from moments import Counter, Moment, interrupt, struck
from work import Setting, Work, ends_well, one_line, others, run

METHODS = ("radial-vcl", "ewc", "replay", "vcl-coreset-random", "single-task", "ivon")
"""On digits: of a posterior, a penalty, past points, two networks, many networks, a curvature."""
SEQUENCE = ("run", "diabetes-sequence", "--method", "laplace-linearised", "--set", "steps=60")
_ABSENT = object()
_MORE = "additional"
_METHOD = 3
"""Which word of a `run` names the method."""


def altered(setting: Setting) -> Iterator[str | None]:
    """A tensor of a checkpoint: another shape or dtype, NaN, absent, or one too many."""
    import torch

    from vcl_radial.runs.folder import write_state

    changes: dict[str, Callable[[Any], Any]] = {
        "another shape": lambda x: torch.cat([x.flatten(), x.flatten()[:1]]),
        "another dtype": lambda x: x.to(torch.float16),
        "NaN": lambda x: torch.full_like(x, float("nan")),
        "absent": lambda x: _ABSENT,
        _MORE: lambda x: x,
    }
    (eyes,) = (work.command for work in others(setting) if "retinopathy-synthetic" in work.command)
    of_eyes = Work(tuple(word for word in eyes if word != "naive"))
    for work in (*(run(methods=(name,)) for name in METHODS), of_eyes, Work(SEQUENCE)):
        half = _half_done(setting, work)
        paths = sorted(half.glob("**/checkpoint.pt"))
        for what, change in changes.items():
            root, path = setting.new_folder(), setting.rng.choice(paths)
            state = torch.load(io.BytesIO(path.read_bytes()[STAMP:]), weights_only=True)
            where = setting.rng.choice([p for p, x in _tensors(state) if x.is_floating_point()])
            shutil.copytree(half, root / "out")
            checkpoint = root / "out" / path.relative_to(half)
            write_state(checkpoint, _with(state, where, change, more=what == _MORE))
            end = fork(work.arguments(root / "out"), root / "output").wait()
            fault = one_line(end, 1, str(checkpoint), "delete it")
            checkpoint.unlink()
            if what == _MORE:  # without the file one case is as another
                fault = fault or ends_well(setting, work, root)
            name = f"{work} {work.command[_METHOD]}, {'.'.join(map(str, where))}"
            yield fault and f"{name} {what}: {fault}"


def _half_done(setting: Setting, work: Work) -> Path:
    """Where a work was left after three quarters of what it writes."""
    counter, root = Counter(), setting.new_folder()
    struck(work, setting.new_folder(), Moment("writing", None, 0), lambda: None, counter)
    at = 3 * counter.total // 4
    while True:
        end = struck(work, root, Moment("writing", at, counter.total), interrupt)
        if list((root / "out").glob("**/checkpoint.pt")):
            return root / "out"
        at, root = at - max(1, counter.total // 8), setting.new_folder()
        if at < 1:
            raise RuntimeError(f"there is no checkpoint: {end.last_line}")


def _tensors(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Tensors of tables and lists within each other, with the keys on the way; no empty ones."""
    import torch

    if isinstance(state, torch.Tensor) and state.numel():
        yield path, state
    elif isinstance(state, dict | list | tuple):
        for key, value in _items(state).items():
            yield from _tensors(value, (*path, key))


def _items(state: Any) -> dict[Any, Any]:
    return state if isinstance(state, dict) else dict(enumerate(state))


def _with(state: Any, path: tuple[Any, ...], change: Callable[[Any], Any], *, more: bool) -> Any:
    """A copy with one value changed, left out, or with another one beside it."""
    (key, *rest), items = path, _items(state)
    if rest:
        changed = {**items, key: _with(items[key], tuple(rest), change, more=more)}
    else:
        changed = {**items, f"{key}-too" if more else key: change(items[key])}
    changed = {name: value for name, value in changed.items() if value is not _ABSENT}
    return changed if isinstance(state, dict) else list(changed.values())
