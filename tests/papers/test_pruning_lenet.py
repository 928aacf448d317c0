import json
from functools import partial

import pytest
import torch

from reports.papers.analysis import Setting
from reports.seeds.pruning.lenet import pruning_lenet
from reports.seeds.pruning.lenet import training as lenet_training
from reports.seeds.pruning.lenet.network import Kept, pruned_logits
from reports.seeds.pruning.lenet.training import LeNetTraining, load_images
from reports.seeds.pruning.settings import LeNetRecipe, LeNetSpec
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Categorical
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import kl_divergence
from vcl_radial.runs.folder import RunFolder

pytestmark = pytest.mark.slow

SETTINGS = {
    "data.dataset": "digits",
    "epochs": 2,
    "eval_samples": 2,
    "tolerance": 4.0,
    "learning_rate": 3e-3,
}


def setting(out, **others):
    return Setting(out=out, seeds=1, jobs=1, settings=SETTINGS | others)


def folder_of(out, **recipe):
    recipe = {"learning_rate": 3e-3, "epochs": 1, **recipe}
    tables = {"data": {"dataset": "digits"}, "recipe": recipe}
    run = LeNetSpec.model_validate(
        {"benchmark": "pruning-lenet", "method": "rdp", "seed": 1, **tables}
    )
    return RunFolder(out, run)


def trained(folder, images):
    """The network after its epochs, before it is pruned."""
    return LeNetTraining(folder.run, images, lambda step: None).trained()


def digits(folder):
    return load_images(folder.run.data, None, torch.device("cpu"))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One seed on digits, carried out."""
    out = tmp_path_factory.mktemp("runs")
    return out, pruning_lenet.analyse(setting(out))


def numbers_of(out):
    (path,) = out.glob("pruning-lenet/rdp/seed-0-*/numbers.json")
    return json.loads(path.read_text())


def test_the_best_of_the_last_epochs_has_the_lowest_training_cross_entropy(tmp_path, monkeypatch):
    """A step that is too long makes the last epoch worse than the one before."""
    nlls, states = [], []
    keep_best = LeNetTraining.keep_best

    def look(self, network, epoch):
        nlls.append(epoch.nll)
        states.append({name: p.detach().clone() for name, p in network.named_parameters()})
        keep_best(self, network, epoch)

    monkeypatch.setattr(LeNetTraining, "keep_best", look)
    recipe = {"epochs": 4, "best_of": 3, "schedule": "constant", "learning_rate": 3e-2}
    folder = folder_of(tmp_path, **recipe)
    network = trained(folder, digits(folder))
    best = min(range(1, 4), key=lambda epoch: nlls[epoch])
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter, states[best][name], msg=name)


def test_a_seed_is_pruned_and_scored(done):
    out, analysis = done
    numbers = numbers_of(out)
    assert numbers["validation_error"] <= numbers["validation_error_before"] + 4.0
    assert numbers["error"] < 60
    assert numbers["architecture"] in analysis.notes[0]
    assert len(analysis.figure.axes) == 6
    assert not list(out.rglob("*.pt"))


def test_the_bars_count_every_row_and_column(done):
    _, analysis = done
    counted = {c.panel.split(", ")[1]: sum(c.y) for c in analysis.curves if c.name == "groups"}
    assert counted == {
        "conv1 rows": 20,
        "conv2 rows": 50,
        "fc1 rows": 500,
        "conv2 columns": 20,
        "fc1 columns": 800,
        "fc2 columns": 500,
    }


def test_training_lowers_the_error_and_uses_no_test_image(tmp_path):
    images = digits(folder_of(tmp_path))
    assert [len(images[part][1]) for part in ("train", "validation")] == [1298, 144]
    errors = []
    for epochs in (1, 3):
        network = trained(folder_of(tmp_path, epochs=epochs), {"train": images["train"]})
        whole = partial(pruned_logits, network.means(), Kept.whole())
        errors.append(lenet_training.error(whole, *images["validation"]))
    assert errors[1] < errors[0] < 90


def test_cuts_are_chosen_on_validation_images_and_scored_on_test_images(tmp_path):
    folder = folder_of(tmp_path)
    images, recipe = digits(folder), LeNetRecipe(tolerance=5.0, eval_samples=2)
    network = trained(folder, images)
    first = lenet_training.prune(network, recipe, images)
    x, y = images["test"]
    images["test"] = x, (y + 1) % 10
    relabelled = lenet_training.prune(network, recipe, images)
    for key in ("cuts", "architecture", "validation_error", "validation_error_before"):
        assert relabelled[key] == first[key]
    for key in ("error", "error_before", "error_of_draws"):
        assert relabelled[key] > first[key]
    # Scored on the validation images, the two errors are one.
    images["test"] = images["validation"]
    same = lenet_training.prune(network, recipe, images)
    assert same["error"] == same["validation_error"]
    assert same["error_before"] == same["validation_error_before"]


def test_the_kl_is_counted_once_for_all_training_images(tmp_path, monkeypatch):
    """Where the images say nothing, a step's gradient is that of KL / N."""
    folder = folder_of(tmp_path, batch_size=649)
    monkeypatch.setattr(Categorical, "nll", lambda self, logits, y: 0 * logits.sum())
    monkeypatch.setattr(VCL, "end_task", lambda self, task: None)  # the prior stays
    gradients = []

    def keep(optimizer, *args):
        group = optimizer.param_groups[1]["params"]
        gradients.append([p.grad.clone() for p in group])

    monkeypatch.setattr(torch.optim.Adam, "step", keep)
    network = trained(folder, digits(folder))
    network.zero_grad()
    (kl_divergence(network, [0]) / 1298).backward()
    radii = lenet_training.make_optimizer(network, folder.run.recipe).param_groups[1]["params"]
    for kept, parameter in zip(gradients[0], radii, strict=True):
        torch.testing.assert_close(kept, parameter.grad)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epochs": 0}, "epochs = 0: input should be greater than or equal to 1"),
        ({"epoch": 3}, "unknown key 'epoch'; the nearest known one is 'epochs'"),
        ({"prior_length": 1.0}, "prior_length = 1.0: input should be less than 1"),
        ({"data.sat": "mnist"}, "unknown key 'data.sat'; the nearest known one is 'data.dataset'"),
        ({"batch_size": 5000}, "no batch"),
    ],
)
def test_a_wrong_setting_is_named(wrong, message, tmp_path):
    with pytest.raises(UserError, match=message):
        pruning_lenet.analyse(setting(tmp_path, **wrong))
