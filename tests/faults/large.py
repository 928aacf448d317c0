"""Tables of many columns or rows, images of many classes: to the end, or a line that says why."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from children import begin
from work import Setting, Work, one_line

COLUMNS, ROWS, CLASSES = 20_000, 1_000_000, 1_000
_FEW = 60
_IMAGES = 2
"""Of a class, in each part."""
_PATIENCE = 1200.0


def inputs(setting: Setting) -> Iterator[str | None]:
    """Data of three shapes, each larger than anything that comes with the suite."""
    for columns, rows in ((COLUMNS, _FEW), (3, ROWS)):
        place = setting.place()
        benchmark = _table(place, columns, rows)
        words = ("run", str(benchmark), "--method", "gaussian-vcl", "--set", "steps=20")
        yield _ends(words, place, f"{rows:,} rows of {columns:,} columns")
    place = setting.place()
    _images(place / "images", CLASSES)
    words = ("run", "image-folder-single-head", "--method", "naive", "--seeds", "1")
    words += ("--data-dir", str(place / "images"))
    words += ("--set", "epochs=1", "network=mlp", "hidden=[8]", "stream.tasks=10")
    yield _ends(words, place, f"{CLASSES:,} classes")


def _ends(words: Sequence[str], place: Path, name: str) -> str | None:
    end = begin(Work(tuple(words)).arguments(place / "out"), place / "said").wait(_PATIENCE)
    print(f"  {name}: {end.words}", flush=True)
    fault = None if end.code == 0 else one_line(end, 1)
    return fault and f"{name}: {fault}"


def _table(place: Path, columns: int, rows: int) -> Path:
    """Random numbers, with a file that makes a benchmark of them."""
    import numpy as np

    rng = np.random.default_rng(0)
    names = [*(f"x{number}" for number in range(columns)), "y"]
    with (place / "table.csv").open("w") as file:
        file.write(",".join(names) + "\n")
        for _ in range(0, rows, _FEW):
            np.savetxt(file, rng.normal(size=(_FEW, columns + 1)), "%.3f", ",")
    benchmark = place / "table.toml"
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
