"""Tables of many columns or rows, images of many classes: to the end, or a line that says why."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from children import begin
from work import Setting, Work, one_line

COLUMNS, ROWS, CLASSES = 20_000, 1_000_000, 1_000
_FEW = 60
_IMAGES = 2
"""Number of images of a class, in each part."""
_PATIENCE = 1200.0


def inputs(setting: Setting) -> Iterator[str | None]:
    """Data of three shapes, each larger than anything that comes with the suite."""
    for columns, rows in ((COLUMNS, _FEW), (3, ROWS)):
        root = setting.new_folder()
        benchmark = _table(root, columns, rows)
        command = ("run", str(benchmark), "--method", "gaussian-vcl", "--set", "steps=20")
        yield _ends(command, root, f"{rows:,} rows of {columns:,} columns")
    root = setting.new_folder()
    _images(root / "images", CLASSES)
    command = ("run", "image-folder-single-head", "--method", "naive", "--seeds", "1")
    command += ("--data-dir", str(root / "images"))
    command += ("--set", "epochs=1", "network=mlp", "hidden=[8]", "stream.tasks=10")
    yield _ends(command, root, f"{CLASSES:,} classes")


def _ends(command: Sequence[str], root: Path, name: str) -> str | None:
    end = begin(Work(tuple(command)).arguments(root / "out"), root / "output").wait(_PATIENCE)
    print(f"  {name}: {end.last_line}", flush=True)
    fault = None if end.code == 0 else one_line(end, 1)
    return fault and f"{name}: {fault}"


def _table(root: Path, columns: int, rows: int) -> Path:
    """Random numbers, with a file that makes a benchmark of them."""
    import numpy as np

    rng = np.random.default_rng(0)
    names = [*(f"x{number}" for number in range(columns)), "y"]
    with (root / "table.csv").open("w") as file:
        file.write(",".join(names) + "\n")
        for _ in range(0, rows, _FEW):
            np.savetxt(file, rng.normal(size=(_FEW, columns + 1)), "%.3f", ",")
    benchmark = root / "table.toml"
    benchmark.write_text(
        'track = "regression"\n[data]\ntable = "table.csv"\ntarget = "y"\nsplits = 1\n'
    )
    return benchmark


def _images(folder: Path, classes: int) -> None:
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for number in range(classes):
            of_class = folder / part / f"class-{number:04}"
            of_class.mkdir(parents=True)
            for image in range(_IMAGES):
                pixels = rng.integers(0, 256, (8, 8), dtype=np.uint8)
                Image.fromarray(pixels).save(of_class / f"{image}.png")
