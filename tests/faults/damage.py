"""Stored files cut off or with flipped bits, and a checkpoint that holds a program."""

import hashlib
import io
import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from children import fork
from isolation import apart
from moments import Moment, interrupt, moments_of, struck
from work import BENCHMARK, Setting, Work, ends_well, lost, one_line, others, run, sweep

if TYPE_CHECKING:
    from vcl_radial.runs.folder import RunFolder

MODEL = "model.*"
"""The files of a kept model, which are checked where the model is loaded."""

STAMP = 32
"""Bytes of the checksum at the start of a checkpoint."""


def result_files(setting: Setting) -> Iterator[str | None]:
    """Each file of a finished run at many offsets: the damage is seen, and its file is named."""
    root = setting.new_folder()
    out = root / "out"
    for work in (run(), *others(setting)):
        fork(work.arguments(out), root / "output").wait()
    for marker in sorted(out.glob("**/done")):
        folder = _folder_of(marker, out)
        for path in sorted(set(folder.path.iterdir()) - set(folder.path.glob(MODEL))):
            whole = path.read_bytes()
            harmed = list(_harmed(setting, whole, 3 * setting.moments))
            # With few moments each file has one kind of damage, and files share the kinds.
            for what, content in setting.rng.sample(harmed, min(len(harmed), setting.moments**2)):
                path.write_bytes(content)
                fault = folder.fault()
                if fault is None and not (path.name == "done" and _same_marker(whole, content)):
                    yield f"{path.relative_to(out)}, {what}: not noticed"
                elif fault is not None and not _named(fault, path, content):
                    yield f"{path.relative_to(out)}, {what}: not named: {fault}"
                else:
                    yield None
            path.write_bytes(whole)


def model_files(setting: Setting) -> Iterator[str | None]:
    """Each file of a kept model at many offsets: the damage is seen, and its file is named."""
    root = setting.new_folder()
    fork(run().arguments(root / "out"), root / "output").wait()
    yield from apart(lambda: _damaged_models(setting, root / "out"), root / "answers.json")


def _damaged_models(setting: Setting, out: Path) -> Iterator[str | None]:
    import vcl_radial as vr
    from vcl_radial.errors import DataError

    for path in sorted(out.glob(f"**/{MODEL}")):
        whole = path.read_bytes()
        for what, content in _harmed(setting, whole, 3 * setting.moments):
            path.write_bytes(content)
            fault = None
            try:
                vr.load(path.parent)
            except DataError as error:
                if str(path) not in str(error) or "\n" in str(error):
                    fault = f"not named in one line: {error}"
            else:
                fault = None if _same_marker(whole, content) else "not noticed"
            yield fault and f"{path.relative_to(out)}, {what}: {fault}"
        path.write_bytes(whole)


def redone(setting: Setting) -> Iterator[str | None]:
    """The whole command after damage to one file: that run is done again, the other is kept."""
    work = run()
    root = setting.new_folder()
    fork(work.arguments(root / "out"), root / "output").wait()
    finished = root / "out"
    (folder,) = (path.parent for path in finished.glob(f"{BENCHMARK}/naive/*/done"))
    for name in sorted(path.name for path in {*folder.iterdir()} - {*folder.glob(MODEL)}):
        for what, content in _harmed(setting, (folder / name).read_bytes(), 2):
            root = setting.new_folder()
            shutil.copytree(finished, root / "out", copy_function=shutil.copy2)
            path = root / "out" / (folder / name).relative_to(finished)
            path.write_bytes(content)
            if name == "done" and _same_marker((folder / name).read_bytes(), content):
                continue
            end = fork(work.arguments(root / "out"), root / "output").wait()
            fault = None if end.code == 0 else f"it does not get through: {end.last_line}"
            if fault is None and f"{path.parent}/" not in end.output:
                fault = "the damage is not named"
            if fault is None and "1 run to do" not in end.output:
                fault = "not one run was done again"
            fault = fault or lost(setting, work, root / "out")
            yield fault and f"{name}, {what}: {fault}"


def checkpoints(setting: Setting) -> Iterator[str | None]:
    """A checkpoint at many offsets: never taken over, and its run starts anew by itself."""
    work = run(methods=("naive",))
    half = _half_done(setting, work)
    (checkpoint,) = half.glob("**/checkpoint.pt")
    folder = _folder_of(checkpoint, half)
    whole = checkpoint.read_bytes()
    harmed = list(_harmed(setting, whole, 3 * setting.moments))
    for what, content in harmed:
        checkpoint.write_bytes(content)
        fault = _refused(folder, "damaged")
        yield fault and f"{what}: {fault}"
    checkpoint.write_bytes(whole)
    for what, content in harmed[: max(1, setting.moments // 10)]:
        root = setting.new_folder()
        shutil.copytree(half, root / "out")
        path = root / "out" / checkpoint.relative_to(half)
        path.write_bytes(content)
        end = fork(work.arguments(root / "out"), root / "output").wait()
        fault = None if end.code == 0 else f"it does not start anew: {end.last_line}"
        if fault is None and str(path) not in end.output + end.errors:
            fault = "the damage is not named"
        fault = fault or lost(setting, work, root / "out")
        yield fault and f"{what}: {fault}"


def payload(setting: Setting) -> Iterator[str | None]:
    """A checkpoint with a pickled call, its checksum right: refused, and never executed.

    A sweep, which nobody sits beside, throws it away by itself.
    """
    import torch

    for work in (run(methods=("naive",)), sweep(setting)):
        half = _half_done(setting, work)
        (checkpoint,) = half.glob("**/checkpoint.pt")
        state = torch.load(io.BytesIO(checkpoint.read_bytes()[STAMP:]), weights_only=True)
        for key in (None, "strategy", "rows", "spec"):
            root = setting.new_folder()
            trace = root / "executed"
            buffer = io.BytesIO()
            torch.save(_Payload(trace) if key is None else {**state, key: _Payload(trace)}, buffer)
            data = buffer.getvalue()
            shutil.copytree(half, root / "out")
            path = root / "out" / checkpoint.relative_to(half)
            path.write_bytes(hashlib.sha256(data).digest() + data)
            end = fork(work.arguments(root / "out"), root / "output").wait()
            fault = "the payload was executed" if trace.exists() else None
            if work.command[0] == "run":
                fault = fault or one_line(end, 1, str(path), "delete it")
                path.unlink(missing_ok=True)
            elif fault is None and (end.code != 0 or str(path) not in end.output):
                fault = f"it is not named, or the sweep ends: {end.last_line}"
            fault = fault or ends_well(setting, work, root)
            yield fault and f"{work.command[0]}, payload as {key or 'the whole'}: {fault}"
            torch.load(io.BytesIO(data), weights_only=False)
            if not trace.exists():
                yield "the payload of the suite does nothing, so it proves nothing"


def sweep_files(setting: Setting) -> Iterator[str | None]:
    """sweep.toml, trials.csv and the runs of a finished sweep."""
    work = sweep(setting)
    root = setting.new_folder()
    fork(work.arguments(root / "out"), root / "output").wait()
    finished = root / "out"
    paths = [finished / "tiny" / name for name in ("sweep.toml", "trials.csv")]
    paths += sorted(finished.glob("**/done"))[:1] + sorted(finished.glob("**/metrics.json"))[:1]
    for path in paths:
        whole = path.read_bytes()
        for what, content in _harmed(setting, whole, 2):
            root = setting.new_folder()
            shutil.copytree(finished, root / "out")
            (root / "out" / path.relative_to(finished)).write_bytes(content)
            end = fork(work.arguments(root / "out"), root / "output").wait()
            fault = None if end.code == 0 else f"it does not get through: {end.last_line}"
            fault = fault or lost(setting, work, root / "out")
            yield fault and f"{path.name}, {what}: {fault}"


def data_files(setting: Setting) -> Iterator[str | None]:
    """Data files whose checksums are not the published ones: named, and nothing is begun."""
    from vcl_radial.data.data_files import IDX_NAMES

    data = setting.new_folder() / "data"
    data.mkdir()
    for name in IDX_NAMES:
        (data / name).write_bytes(setting.rng.randbytes(1000))
    root = setting.new_folder()
    work = Work(("run", "split-mnist-multi-head", "--method", "naive", "--data-dir", str(data)))
    end = fork(work.arguments(root / "out"), root / "output").wait()
    fault = one_line(end, 1, str(data))
    yield fault or ("a run was begun" if list((root / "out").glob("**/spec.toml")) else None)


class _Payload:
    """Unpickled, it makes a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.trace,)


def _harmed(setting: Setting, whole: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    """A file with a bit flipped, and cut off, at random offsets; the ends of it among them."""
    ends = [0, len(whole) - 1]
    offsets = ends + [setting.rng.randrange(len(whole)) for _ in range(count)]
    for offset in offsets[: max(2, count)] if count > 2 else offsets[2:]:
        bit = 1 << setting.rng.randrange(8)
        flipped = whole[:offset] + bytes([whole[offset] ^ bit]) + whole[offset + 1 :]
        yield f"bit {bit} of byte {offset} flipped", flipped
        yield f"cut off after {offset} bytes", whole[:offset]


def _named(fault: str, path: Path, content: bytes) -> bool:
    """Whether a fault names the file; a harmed marker may name what it now speaks of."""
    if path.name == "done" and content:
        return str(path.parent) in fault or fault == "not finished"
    return str(path) in fault


def _same_marker(whole: bytes, content: bytes) -> bool:
    """Whether a marker says the same in spite of a flipped bit, as in white space."""
    try:
        return bool(json.loads(whole) == json.loads(content))
    except ValueError:
        return False


def _half_done(setting: Setting, work: Work) -> Path:
    """Where a work was left before its last evaluation: all but finished."""
    root, total = setting.new_folder(), moments_of(setting, work, "evaluation")
    end = struck(work, root, Moment("evaluation", total, total), interrupt)
    if not list((root / "out").glob("**/checkpoint.pt")):
        raise RuntimeError(f"there is no checkpoint: {end.last_line}")
    return root / "out"


def _folder_of(path: Path, out: Path) -> "RunFolder":
    """The run folder that a file lies in."""
    from vcl_radial.runs import tracks
    from vcl_radial.runs.folder import RunFolder

    spec = tomllib.loads((path.parent / "spec.toml").read_text())
    return RunFolder(out, tracks.from_tables(spec).validated(spec))


def _refused(folder: "RunFolder", fault: str) -> str | None:
    """What is wrong with how a checkpoint is refused, or None."""
    from vcl_radial.errors import UserError

    try:
        folder.load_checkpoint()
    except UserError as error:
        if fault in str(error) and str(folder.checkpoint) in str(error):
            return None
        return f"it is not named as {fault}: {error}"
    return "it was taken over"
