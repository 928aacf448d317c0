"""What the file of a finished piece of work is named after."""

from pathlib import Path

from vcl_radial.runs.result_file import Unit


class Trained(Unit):
    epochs: int = 1
    batch_size: int = 32


class TrainedLikewise(Unit):
    batch_size: int = 32
    epochs: int = 1


def test_results_are_found_again_after_keys_have_changed_places():
    path = Trained(method="mfvi", seed=3).path(Path("runs"))
    assert path == TrainedLikewise(method="mfvi", seed=3).path(Path("runs"))
    assert path.parent == Path("runs/mfvi")
    assert path.name.startswith("seed-3-")
    assert path != Trained(method="mfvi", seed=3, epochs=2).path(Path("runs"))
