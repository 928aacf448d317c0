"""Small data files in the layouts of the published ones."""

import gzip

import numpy as np


def small_mushrooms(folder):
    """A table of the layout of UCI mushroom in which one odour is poisonous."""
    folder.mkdir(parents=True)
    odours = np.random.default_rng(0).choice(list("fna"), 120)
    rows = [f"{'p' if odour == 'f' else 'e'},{odour},x,?" for odour in odours]
    text = "\n".join(["edibility,odor,cap-shape,stalk-root", *rows, ""])
    (folder / "mushroom.csv.gz").write_bytes(gzip.compress(text.encode()))
