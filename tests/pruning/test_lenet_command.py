import json

import numpy as np
import pytest
import torch

from vcl_radial.cli import prune
from vcl_radial.cli.arguments import Parser
from vcl_radial.errors import UserError
from vcl_radial.nn import kl_divergence
from vcl_radial.papers.pruning import lenet, lenet_report, lenet_training
from vcl_radial.papers.pruning.lenet_training import LeNetUnit, load_images, train
from vcl_radial.papers.pruning.lenet_training import prune as prune_network

pytestmark = [pytest.mark.usefixtures("no_pictures"), pytest.mark.slow]

TINY = ["--dataset", "digits", "--device", "cpu"]
SETTINGS = ["epochs=2", "samples=2", "tolerance=4.0", "learning_rate=3e-3"]


def call(*words):
    parser = Parser(prog="vcl-radial")
    prune.add(parser.add_subparsers(parser_class=Parser))
    options = parser.parse_args(["prune", "lenet", *TINY, *map(str, words)])
    return options.command(options)


def test_a_batch_of_more_images_than_there_are_is_refused(tmp_path):
    with pytest.raises(UserError, match="batch_size = 5000 is more than the"):
        call("--seeds", 1, "--out", tmp_path, "--set", *SETTINGS, "batch_size=5000")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One seed on digits, carried out."""
    out = tmp_path_factory.mktemp("prune")
    assert call("--seeds", 1, "--out", out, "--set", *SETTINGS) == 0
    return out


def result(out):
    (path,) = (out / "rdp").glob("seed-0-*.json")
    return json.loads(path.read_text())


def test_a_seed_leaves_a_result_and_a_page(done):
    numbers = result(done)["numbers"]
    assert numbers["validation_error"] <= numbers["validation_error_before"] + 4.0
    assert numbers["error"] < 60
    page = (done / "report" / "README.md").read_text()
    assert f"| ours, seed 0 | {numbers['architecture']} |" in page
    assert "| RDP | 4-7-110-66 |" in page
    assert "digits, not MNIST" in page
    assert "`vcl-radial prune lenet --dataset digits --seeds 1 --set epochs=2" in page
    for kind in ("png", "svg", "csv"):
        assert (done / "report" / f"pruning-lenet.{kind}").stat().st_size > 1000
    assert not list((done / "rdp").glob("*.pt"))


def test_the_bars_count_every_row_and_column(done):
    content = result(done)
    unit = LeNetUnit.model_validate(content["unit"])
    curves = lenet_report.histograms((unit, content["numbers"], {}))
    found = {c.panel.split(", ")[1]: sum(c.y) for c in curves if c.name == "groups"}
    assert found == {
        "conv1 rows": 20,
        "conv2 rows": 50,
        "fc1 rows": 500,
        "conv2 columns": 20,
        "fc1 columns": 800,
        "fc2 columns": 500,
    }


@pytest.mark.parametrize(("spread", "agrees"), [(0.5, True), (3.0, False)])
def test_two_heaps_are_clusters_and_one_is_not(spread, agrees, done):
    content = result(done)
    generator = np.random.default_rng(0)
    numbers = content["numbers"]
    modes = {
        group: np.concatenate([generator.normal(c, spread, 200) for c in (-3, 3)]).tolist()
        for group in numbers["modes"]
    }
    told = numbers | {"modes": modes, "cuts": dict.fromkeys(numbers["cuts"], 0.0)}
    unit = LeNetUnit.model_validate(content["unit"])
    claim = lenet_report.make_claims([(unit, told, {})])[-1]
    assert "clusters" in claim.published
    assert claim.agrees is agrees


def test_a_finished_seed_is_kept(done, monkeypatch, capsys):
    monkeypatch.setattr(lenet_training, "train", None)
    assert call("--seeds", 1, "--out", done, "--set", *SETTINGS) == 0
    assert "0 networks to train, 1 kept from before" in capsys.readouterr().out


def test_a_stopped_seed_goes_on_to_the_same_numbers(done, tmp_path, monkeypatch, capsys):
    real = lenet_training.store

    def stop(*words):
        real(*words)
        raise KeyboardInterrupt

    monkeypatch.setattr(lenet_training, "store", stop)
    with pytest.raises(KeyboardInterrupt):
        call("--seeds", 1, "--out", tmp_path, "--set", *SETTINGS)
    monkeypatch.setattr(lenet_training, "store", real)
    assert call("--seeds", 1, "--out", tmp_path, "--set", *SETTINGS) == 0
    assert "goes on after epoch 1" in capsys.readouterr().out
    assert result(tmp_path)["numbers"] == result(done)["numbers"]


def test_training_lowers_the_error_and_uses_no_test_image(tmp_path):
    unit = LeNetUnit(method="rdp", seed=1, dataset="digits", epochs=2, learning_rate=3e-3)
    images = load_images(unit, None, torch.device("cpu"))
    assert [len(images.y[part]) for part in ("train", "validation")] == [1298, 144]
    images.x["test"], images.y["test"] = torch.empty(0), torch.empty(0)
    errors = []
    train(unit, images, tmp_path / "a.pt", lambda words: errors.append(float(words.split()[-2])))
    assert errors[-1] < errors[0] < 90


def test_cuts_are_chosen_on_validation_images_and_scored_on_test_images(tmp_path):
    unit = LeNetUnit(
        method="rdp",
        seed=1,
        dataset="digits",
        epochs=1,
        learning_rate=3e-3,
        tolerance=5.0,
        samples=2,
    )
    images = load_images(unit, None, torch.device("cpu"))
    network, _ = train(unit, images, tmp_path / "a.pt", lambda words: None)
    found = prune_network(network, unit, images)
    images.y["test"] = (images.y["test"] + 1) % 10
    relabelled = prune_network(network, unit, images)
    for key in ("cuts", "architecture", "validation_error", "validation_error_before"):
        assert relabelled[key] == found[key]
    for key in ("error", "error_before", "error_of_draws"):
        assert relabelled[key] > found[key]
    # Scored on the validation images, the two errors are one.
    images.x["test"], images.y["test"] = images.x["validation"], images.y["validation"]
    same = prune_network(network, unit, images)
    assert same["error"] == same["validation_error"]
    assert same["error_before"] == same["validation_error_before"]


def test_the_kl_is_counted_once_for_all_training_images(tmp_path, monkeypatch):
    """Where the images say nothing, a step's gradient is that of KL / N."""
    unit = LeNetUnit(method="rdp", seed=1, dataset="digits", epochs=1, batch_size=649)
    images = load_images(unit, None, torch.device("cpu"))
    monkeypatch.setattr(lenet_training, "categorical_nll", lambda logits, y: 0 * logits.sum())
    gradients = []

    def keep(optimizer, *args):
        group = optimizer.param_groups[1]["params"]
        gradients.append([p.grad.clone() for p in group])

    monkeypatch.setattr(torch.optim.Adam, "step", keep)
    network, _ = train(unit, images, tmp_path / "a.pt", lambda words: None)
    network.zero_grad()
    (kl_divergence(network, [0]) / 1298).backward()
    radii = lenet_training._optimizer(network, unit).param_groups[1]["params"]
    for found, parameter in zip(gradients[0], radii, strict=True):
        torch.testing.assert_close(found, parameter.grad)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("epochs=0", "--set epochs: input should be greater than or equal to 1"),
        ("epoch=3", "unknown key 'epoch'; the nearest known one is 'epochs'"),
        ("metod=3", "unknown key 'metod'; the nearest known one is 'spread'"),
        ("prior_length=1.0", "--set prior_length: input should be less than 1"),
        ("seed=4", "--set seed: is not a setting"),
    ],
)
def test_a_wrong_setting_is_named(setting, said, tmp_path):
    with pytest.raises(UserError, match=said):
        call("--out", tmp_path, "--set", setting)


@pytest.mark.parametrize("option", ["--out", "--to"])
def test_a_folder_that_cannot_be_made_is_said_before_the_work(option, tmp_path, monkeypatch):
    monkeypatch.setattr(lenet, "train", pytest.fail)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file: cannot be written"):
        call("--out", tmp_path / "out", option, tmp_path / "file")


def test_a_damaged_checkpoint_is_named(tmp_path):
    unit = LeNetUnit(method="rdp", seed=0, dataset="digits", epochs=1)
    (tmp_path / "a.pt").write_bytes(b"x" * 100)
    images = load_images(unit, None, torch.device("cpu"))
    with pytest.raises(UserError, match=r"a\.pt: damaged"):
        train(unit, images, tmp_path / "a.pt", print)
