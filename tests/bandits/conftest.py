import gzip
import io
from functools import cache

import numpy as np
import pytest

from vcl_radial.tracks.bandits.files import FILES

OCCUPATIONS = [f"Job-{letter}" for letter in "ABCDEFGHIJKLMN"]


def write_table(path, header, rows):
    lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
    path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))


@cache
def published_files():
    """Small files in the formats of the published ones, compressed."""
    random = np.random.default_rng(1)
    stocks = [" ".join(f"{x:.6e}" for x in row) for row in random.normal(size=(300, 21))]
    array = io.BytesIO()
    np.save(array, random.uniform(-10, 10, (150, 40)))
    forest = random.integers(0, 3000, (200, 54))
    trees = [f"{','.join(map(str, x))},{1 + k % 7}" for k, x in enumerate(forest)]
    names = ["caseid", *(f"i{k}" for k in range(34)), "dOccup", *(f"d{k}" for k in range(33))]
    people = [
        f"{10000 + k},{','.join(map(str, row[:34]))},{k % 9},{','.join(map(str, row[34:]))}"
        for k, row in enumerate(random.integers(0, 3, (180, 67)))
    ]
    files = {
        "financial": "\n".join([" ".join(f"s{k}" for k in range(21)), *stocks, ""]).encode(),
        "jester": array.getvalue(),
        "covertype": "\n".join([*trees, ""]).encode(),
        "census": "\n".join([",".join(names), *people, ""]).encode(),
    }
    return {name: gzip.compress(content) for name, content in files.items()}


@pytest.fixture
def data_dir(tmp_path):
    """A data folder with small sets that look like the published ones."""
    folder = tmp_path / "data" / "bandits"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    write_table(
        folder / "mushroom.csv.gz",
        ["edibility", "odor", "cap-shape", "stalk-root"],
        [
            (
                "p" if odor == "f" else "e",
                odor,
                random.choice(list("xbk")),
                random.choice(["?", "e"]),
            )
            for odor in random.choice(list("fna"), 300)
        ],
    )
    shuttle = []
    for row in range(200):
        label = int(random.integers(1, 8))
        features = [7 * label, *random.integers(-9, 9, 8)]
        shuttle.append([*features, label, "test" if row % 4 == 0 else "train"])
    names = ["time", *(f"x{k}" for k in range(2, 10)), "class", "split"]
    write_table(folder / "statlog_shuttle.csv.gz", names, shuttle)
    adult = [
        [
            int(random.integers(17, 90)),
            "?" if row % 10 == 0 else "Private",
            int(random.integers(1e4, 1e6)),
            random.choice(["HS-grad", "Masters"]),
            int(random.integers(1, 17)),
            "Divorced",
            OCCUPATIONS[row % 14],
            "Wife",
            "White",
            "Female",
            0,
            0,
            40,
            "Cuba",
            random.choice(["<=50K", ">50K"]),
            "train",
        ]
        for row in range(210)
    ]
    header = (
        "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,"
        "race,sex,capital-gain,capital-loss,hours-per-week,native-country,income,split"
    )
    write_table(folder / "adult.csv.gz", header.split(","), adult)
    for name, content in published_files().items():
        path = folder / FILES[name].removesuffix(".gz")
        path.with_name(f"{path.name}.gz").write_bytes(content)
    return folder.parent
