"""`vcl-radial features`: every kind of network, and a file that `stream.features` reads."""

import csv

import numpy as np
import pytest
import torch
from PIL import Image

import vcl_radial as vr
from vcl_radial.cli import main
from vcl_radial.data.backbones import PACKAGE, weights_file
from vcl_radial.data.streams import load_dataset

installed = pytest.mark.skipif(weights_file() is None, reason=f"{PACKAGE} is not installed")


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run on split digits."""
    out = tmp_path_factory.mktemp("runs")
    settings = ["--set", "epochs=1", "hidden=[12, 7]", "batch_size=64", "eval_samples=2"]
    method = ["--method", "gaussian-vcl"]
    assert main(["run", "split-digits-multi-head", *method, *settings, "--out", str(out)]) == 0
    (card,) = out.rglob("model.json")
    return card.parent


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    """A file with the weights of a network of torchvision, and the network."""
    from torchvision import models

    torch.manual_seed(0)
    network = models.resnet18(weights=None).eval()
    path = tmp_path_factory.mktemp("weights") / "resnet18.pth"
    torch.save(network.state_dict(), path)
    return path, network


def arrays(path="rows.npz"):
    with np.load(path, allow_pickle=False) as file:
        return file["train"], file["test"]


@installed
def test_the_file_is_one_for_a_stream(tmp_path):
    choices = ["--size", "32", "--layers", "0,2", "--pool", "1"]
    assert main(["features", "efficientnet-lite0", "digits", "--to", "rows.npz", *choices]) == 0
    run = ["run", "split-digits-single-head", "--method", "bayes-linear", "--out", "runs"]
    settings = ["stream.features=rows.npz", "options.features=inputs"]
    assert main([*run, "--set", *settings]) == 0
    computed = ["stream.features=efficientnet-lite0", "stream.feature_size=32"]
    computed += ["stream.feature_layers=[0, 2]", "stream.feature_pool=1", settings[1]]
    assert main([*run[:-1], "computed", "--set", *computed]) == 0
    scores = [
        [row["value"] for row in csv.DictReader(next((tmp_path / o).rglob("accuracy.csv")).open())]
        for o in ("runs", "computed")
    ]
    assert scores[0] == scores[1]  # the stream computes the same rows


def test_the_features_of_a_run_are_what_its_heads_see(finished):
    assert main(["features", str(finished), "digits", "--to", "rows.npz"]) == 0
    digits, model = load_dataset("digits"), vr.load(finished)
    seen = []
    model.network.head.head(0).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    from vcl_radial.nn.weights import at_means

    with at_means(model.network), torch.enable_grad():
        model.network(model.inputs(digits.test_x), 0)
    train, test = arrays()
    assert train.shape == (1442, 7)
    np.testing.assert_allclose(test, seen[0].detach().numpy(), rtol=2e-3, atol=2e-3)


def test_the_features_of_a_torchvision_network_are_what_its_last_layer_sees(resnet):
    path, network = resnet
    options = ["--weights", str(path), "--size", "32"]
    assert main(["features", "resnet18", "small", "--to", "rows.npz", *options]) == 1
    for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png", "b/3.png"):
        file = path.parent / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(len(name)).integers(0, 256, (40, 30, 3), np.uint8)
        Image.fromarray(pixels).save(file)
    images = path.parent / "images"
    assert main(["features", "resnet18", str(images), "--to", "rows.npz", *options]) == 0
    data = load_dataset("image-folder", images, image_size=32)
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = data.train_x / 255
    x = (x - mean[:, None, None]) / deviation[:, None, None]
    with torch.no_grad():
        outputs = network(x)
    head = network.fc
    train, test = arrays()
    assert test.shape == (2, 512)
    found = torch.from_numpy(train).float() @ head.weight.T + head.bias
    torch.testing.assert_close(found, outputs.detach(), rtol=1e-2, atol=1e-2)
    layers = ["--layers", "layer1,layer3", "--pool", "2"]
    assert main(["features", "resnet18", str(images), "--to", "rows.npz", *options, *layers]) == 0
    assert arrays()[0].shape == (3, 4 * (64 + 256))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["efficientnet-lite0", "digits", "--to", "rows.txt"], "rows.txt"),
        (["efficientnet-lite0", "digits", "--layers", "a"], "--layers a"),
        (["efficientnet-lite0", "digits", "--layers", "9,4"], "layers"),
        (["efficientnet-lite0", "digits", "--size", "8"], "size = 8"),
        (["efficientnet-lite0", "digits", "--weights", "no.pth"], "--weights"),
        (["efficientnet-lite0", "digit"], "digit"),
        (["resnet18", "digits"], "--weights FILE"),
        (["resnet18", "digits", "--weights", "no.pth"], "no.pth"),
        (["resnet18", "digits", "--weights", "text.pth"], "text.pth"),
        (["resnet19", "digits", "--weights", "text.pth"], "'resnet18'"),
        (["empty", "digits"], "empty: holds no model"),
        (["empty", "digits", "--size", "64"], "--size"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, capsys, arguments, named):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.pth").write_text("no weights")
    if weights_file() is None and arguments[0] == "efficientnet-lite0":
        pytest.skip(f"{PACKAGE} is not installed")
    to = [] if "--to" in arguments else ["--to", "rows.npz"]
    assert main(["features", *arguments, *to]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line


def test_weights_are_never_unpickled(tmp_path, capsys):
    class Harm:
        def __reduce__(self):
            return (open, (str(tmp_path / "harmed"), "w"))

    torch.save({"x": Harm()}, tmp_path / "harm.pth")
    arguments = ["resnet18", "digits", "--weights", "harm.pth", "--to", "rows.npz"]
    assert main(["features", *arguments]) == 1
    assert not (tmp_path / "harmed").exists()
    assert "harm.pth" in capsys.readouterr().err


def test_images_of_another_size_are_named(finished, tmp_path, capsys):
    assert main(["features", str(finished), "glyphs", "--to", "rows.npz"]) == 1
    assert str(finished) in capsys.readouterr().err
