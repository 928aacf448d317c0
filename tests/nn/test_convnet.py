import pytest
import torch
from failing import fails

from vcl_radial.data.streams import TensorStream
from vcl_radial.nn import BayesianConv2d, WithHeads
from vcl_radial.nn.convnet import ConvNet
from vcl_radial.tracks.continual.evaluation import EVAL_BATCH
from vcl_radial.tracks.continual.methods import make_strategy
from vcl_radial.tracks.continual.networks import make_network
from vcl_radial.tracks.continual.settings import Recipe


def test_for_cifar_it_has_the_weights_of_zenke_et_al():
    convolutions = (3 * 9 + 1) * 32 + (32 * 9 + 1) * 32 + (32 * 9 + 1) * 64 + (64 * 9 + 1) * 64
    dense = (64 * 8 * 8 + 1) * 512
    assert sum(p.numel() for p in ConvNet((3, 32, 32)).parameters()) == convolutions + dense


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 30), (1, 28, 28), (3, 50, 33)])
def test_it_gives_512_features_of_any_image_and_batch(shape):
    network = ConvNet(shape)
    x = torch.randn(3, *shape)
    features = network(x)
    assert features.shape == (3, 512)
    for row in range(3):  # one image alone goes another way through memory
        torch.testing.assert_close(network(x[row : row + 1])[0], features[row])


def test_its_dense_layer_does_not_grow_with_large_images():
    def numbers(side):
        return sum(p.numel() for p in ConvNet((3, side, side)).parameters())

    assert numbers(28) < numbers(32) == numbers(100)


def test_every_weight_gets_the_posterior():
    network = WithHeads(ConvNet((3, 8, 8)), (3, 8, 8), 2, posterior="radial")
    assert sum(isinstance(module, BayesianConv2d) for module in network.modules()) == 4
    assert not [name for name, _ in network.named_parameters() if name.endswith((".weight",))]


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1, 7, 8), "[1, 7, 8]"),
        ((64,), "[64]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_with_the_key(shape, words):
    with fails("network", "convnet", words, "mlp"):
        ConvNet(shape)


@pytest.mark.parametrize(("side", "rows"), [(8, EVAL_BATCH), (100, 2**23 // 30_000)])
def test_large_images_are_evaluated_few_at_a_time(side, rows):
    row = (torch.tensor([0]),)
    stream = TensorStream(
        name="large",
        x=torch.zeros(1, 3, side, side),
        y=torch.tensor([0]),
        train=row,
        validation=row,
        test=row,
        task_names=("only",),
        task_classes=((0, 1),),
        n_classes=2,
        multi_head=False,
    )
    recipe = Recipe(strategy="naive", posterior="none", network="convnet")
    strategy = make_strategy(recipe, make_network(stream, recipe), tensor_stream=stream)
    assert strategy.eval_mb_size == rows
