"""First priors: their densities, their KL, and their scales in the layers of a network."""

import math

import pytest
import torch
from failing import fails, refuses
from scenarios import copies, network
from torch.distributions import Categorical, MixtureSameFamily, Normal

import vcl_radial as vr
from vcl_radial.methods.proximal_vcl import ProximalVCL
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import PosteriorSettings, kl_divergence, posterior_blocks
from vcl_radial.nn.first_prior import set_prior_scales
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.restart import restarted
from vcl_radial.posteriors import Gaussian, families
from vcl_radial.posteriors.priors import ScaleMixture
from vcl_radial.tracks.continual.lane_runs import shape
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.networks import network_of_rows
from vcl_radial.tracks.regression.settings import Recipe as RowRecipe
from vcl_radial.training.trainer import Trainer

SCALE = 0.7


class Cauchy:
    """A prior of a user's own."""

    def __init__(self, scale):
        self.scale = scale

    def log_prob(self, w):
        return torch.distributions.Cauchy(0.0, self.scale).log_prob(w).sum(-1)


class OwnKL(Cauchy):
    def kl(self, posterior):
        return posterior.mean.square().sum(-1) / self.scale


def two_tasks():
    """Pairs of inputs and labels."""
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(128, 64, generator=generator), torch.arange(128) % 2) for _ in range(2)]


def q_of(name, D=6):
    torch.manual_seed(1)
    scale = 0.2 + torch.rand(3, D, dtype=torch.float64)
    parts = torch.randn(3, D, dtype=torch.float64), scale
    return families()[name](*parts)


def test_the_mixtures_density_is_that_of_pytorch():
    w = torch.linspace(-3, 3, 41, dtype=torch.float64)
    parts = Normal(torch.zeros(2), torch.tensor([1.5, 0.1], dtype=torch.float64))
    theirs = MixtureSameFamily(Categorical(torch.tensor([0.25, 0.75]).double()), parts)
    ours = ScaleMixture(1.5, 0.25, 0.1).log_prob(w[:, None])
    torch.testing.assert_close(ours, theirs.log_prob(w))


@pytest.mark.parametrize(("share", "narrow"), [(0.3, SCALE), (1.0, 1e-3)])
@pytest.mark.parametrize("name", ["gaussian", "radial", "double-exponential"])
def test_a_mixture_of_one_gaussian_is_it_in_expectation(name, share, narrow):
    q = q_of(name)
    exact = q.kl(Gaussian(torch.zeros_like(q.mean), torch.full_like(q.mean, SCALE)))
    draws = torch.stack([q.kl(ScaleMixture(SCALE, share, narrow), samples=2000) for _ in range(10)])
    error = draws.std(0) / math.sqrt(10)
    assert ((draws.mean(0) - exact).abs() < 5 * error + 1e-9).all()


@pytest.mark.parametrize("name", ["gaussian", "radial"])
def test_the_kl_to_a_mixture_is_not_negative(name):
    q = q_of(name)
    draws = q.kl(ScaleMixture(1.0, 0.5, 0.05), samples=20_000)
    assert (draws > 0).all()
    close = Gaussian(torch.zeros(1, 4), torch.full((1, 4), SCALE))
    assert close.kl(ScaleMixture(SCALE, 0.5, SCALE), samples=50_000).abs() < 0.05


def test_gradients_are_finite_where_a_component_has_no_share():
    w = torch.randn(1, 5, requires_grad=True)
    ScaleMixture(1.0, 1.0, 0.1).log_prob(w).sum().backward()
    torch.testing.assert_close(w.grad, -w.detach())


def test_one_over_root_D_is_the_number_set_by_hand():
    by_size = network(PosteriorSettings(prior_scale="1/sqrt(D)"))
    by_hand = network(PosteriorSettings())
    sizes = [64 * 32 + 32, 32 * 2 + 2]
    set_prior_scales(by_hand, [D**-0.5 for D in sizes])
    for model in (by_size, by_hand):
        scales = [block.prior_scale for block in posterior_blocks(model, [1])]
        assert [float(s[0, 0]) for s in scales] == pytest.approx([D**-0.5 for D in sizes])
    assert kl_divergence(by_size, [0, 1]).equal(kl_divergence(by_hand, [0, 1]))


@pytest.mark.parametrize("multi_head", [True, False])
def test_equal_scales_of_layers_have_the_bits_of_one(multi_head):
    def trained(scale):
        torch.manual_seed(0)
        made = vr.MLP(
            64, 2, hidden=[8], multi_head=multi_head, posterior=PosteriorSettings(prior_scale=scale)
        )
        if scale == 1.0:
            set_prior_scales(made, [0.3, 0.3])
        tasks = two_tasks()
        Trainer(VCL(made), epochs=2, batch_size=64).fit(tasks)
        return copies(made)

    one, other = trained(0.3), trained(1.0)
    assert one.keys() == other.keys()
    assert all(weight.equal(other[name]) for name, weight in one.items())


def test_scales_are_those_of_copies_with_a_new_start_too():
    model = network(PosteriorSettings("gaussian", prior="scale-mixture"))
    set_prior_scales(model, [0.5, 0.25])
    for made in (model, restarted(model)):
        blocks = posterior_blocks(made, [0, 3])
        assert [float(b.prior_scale[0, 0]) for b in blocks] == [0.5, 0.25, 0.25]
        assert [b.prior.components[0][1] for b in blocks] == [0.5, 0.25, 0.25]


@pytest.mark.parametrize("prior", ["scale-mixture", Cauchy, OwnKL])
@pytest.mark.parametrize("family", ["radial", "gaussian", "low-rank"])
def test_only_the_first_task_has_the_first_prior(prior, family):
    model = network(PosteriorSettings(family, prior=prior, prior_scale=SCALE))
    before = copies(model)
    method = VCL(model)
    trainer = Trainer(method, epochs=2, batch_size=64)
    steps = trainer.steps(two_tasks())
    next(steps)
    assert method._closed_form is None
    first = posterior_blocks(model, [0])[0]
    assert not isinstance(first.prior, families()[family])
    next(steps)
    assert isinstance(first.prior, families()[family])
    assert not isinstance(posterior_blocks(model, [1])[-1].prior, families()[family])
    list(steps)
    assert all(torch.isfinite(weight).all() for weight in copies(model).values())
    assert not copies(model)["body.0.weights.blocks.0.mean"].equal(
        before["body.0.weights.blocks.0.mean"]
    )


def test_a_users_kl_takes_the_place_of_the_draw():
    model = network(PosteriorSettings("gaussian", prior=OwnKL, prior_scale=2.0), multi_head=False)
    means = [block.mean for block in posterior_blocks(model, [0])]
    expected = sum(mean.square().sum() for mean in means) / 2
    torch.testing.assert_close(kl_divergence(model, [0]), expected)


def test_a_resumed_first_task_draws_the_same_kl():
    tasks = two_tasks()

    def made():
        model = network(PosteriorSettings("radial", prior="scale-mixture"))
        return Trainer(VCL(model), epochs=3, batch_size=64)

    whole, resumed = made(), made()
    steps = whole.steps(tasks)
    next(steps)
    resumed.load_state_dict(whole.state_dict())
    list(steps)
    resumed.fit(tasks)
    for name, weight in copies(whole.method.network).items():
        assert weight.equal(copies(resumed.method.network)[name])


def test_what_cannot_have_the_prior_is_refused():
    mixture = PosteriorSettings("radial", prior="scale-mixture")
    with refuses("prior = 'gaussian'"):
        ProximalVCL(network(mixture))
    with fails("prior"):
        Lanes([network(mixture)] * 2, 0)
    with fails("prior_scale", 2, 3):
        set_prior_scales(network(), [1.0] * 3)
    with fails("prior_scale"):
        PosteriorSettings(prior_scale=[1.0])
    with fails("prior", "scale-mixture"):
        PosteriorSettings(prior="laplace")
    with fails("prior", "log_prob"):
        network(PosteriorSettings(prior=lambda scale: scale))


@pytest.mark.parametrize("keys", [{"prior": "scale-mixture"}, {"prior_scale": [1.0, 1.0]},
                                  {"prior_scale": "1/sqrt(D)"}])  # fmt: skip
@pytest.mark.parametrize("posterior", ["none", "rdp"])
def test_recipes_without_such_a_prior_refuse_its_keys(posterior, keys):
    (key,) = keys
    grouping = "row" if posterior == "rdp" else "layer"
    with fails(key, posterior):
        Recipe(posterior=posterior, grouping=grouping, **keys).check_method()


def test_recipes_take_the_keys_of_a_mixture_with_a_mixture_alone():
    with pytest.raises(ValueError, match="mixture_share"):
        Recipe(mixture_share=0.1)
    recipe = Recipe(prior="scale-mixture", mixture_share=0.25, mixture_scale=0.01, prior_scale=2.0)
    assert shape(recipe) is None
    assert shape(Recipe()) is not None
    rows = RowRecipe(prior="scale-mixture", mixture_share=0.25, mixture_scale=0.01)
    assert rows.lane is None
    (first, *_) = posterior_blocks(network_of_rows(rows, 3, 1, [4]), [0])
    assert first.prior.components == [(0.25, 1.0), (0.75, 0.01)]


def test_recipes_list_scales_in_the_order_of_the_layers():
    rows = RowRecipe(prior_scale=[0.5, 0.25])
    blocks = posterior_blocks(network_of_rows(rows, 3, 1, [4]), [0])
    assert [float(block.prior_scale[0, 0]) for block in blocks] == [0.5, 0.25]
    with fails("prior_scale", 3):
        network_of_rows(rows, 3, 1, [4, 4])
