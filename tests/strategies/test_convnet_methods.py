"""Every method on colour images with the convolutional network, or the reason why it cannot."""

import pytest
import torch

from vcl_radial.data.streams import ImageData, split_stream
from vcl_radial.errors import UserError
from vcl_radial.runs.catalogue import load, names
from vcl_radial.tracks.continual import training as continual
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.training import ContinualRun

LINEAR_ONLY = {"sfsvi", "vogn", "laplace-kronecker"}
NEEDS = {"ivon": "ivon"}


@pytest.fixture(autouse=True)
def _colour_images(monkeypatch):
    generator = torch.Generator().manual_seed(0)

    def part(per_class):
        y = torch.arange(4).repeat(per_class)
        x = torch.randint(0, 256, (len(y), 3, 8, 8), generator=generator, dtype=torch.uint8)
        return x, y

    data = ImageData("colour", *part(6), *part(2))
    stream = split_stream(data, tasks=2, validation=0, flatten=False)
    monkeypatch.setattr(continual, "stream_for", lambda *_: stream)


def run_of(method):
    recipe = load("method", method).recipe
    quick = {"network": "convnet", "batch_size": 12, "epochs": 1, "eval_samples": 2}
    recipe.pop("first_task_epochs", None)
    if "coreset_size" in recipe.get("options", {}):
        recipe["options"] |= {"coreset_size": 4, "coreset_epochs": 1}
    return ContinualRun(StreamSettings(dataset="digits", tasks=2), Recipe(**recipe | quick), 0)


@pytest.mark.parametrize("method", names("method"))
def test_a_method_trains_the_convnet_or_says_before_training_that_it_cannot(method):
    if method in NEEDS:
        pytest.importorskip(NEEDS[method])
    if method in LINEAR_ONLY:
        with pytest.raises(UserError, match="linear") as error:
            run_of(method)
        assert "\n" not in str(error.value)
        return
    run = run_of(method)
    assert list(run.finish_tasks())[-1] == 2
    assert run.accuracy()["value"].notna().all()
