import pytest
import torch

from vcl_radial.tracks.retinopathy.short_cuts import Colour, Silhouette


def disc(size=64, radius=0.8):
    axis = (torch.arange(size) + 0.5) / size * 2 - 1
    return (torch.hypot(axis, axis[:, None]) < radius).float()


def test_cells_are_shares_of_the_field_whatever_is_seen_within_it():
    field = disc()
    images = torch.stack([field * value for value in (2.0, -1.0, 0.5)]).expand(2, 3, 64, 64)
    dotted = images.clone()
    dotted[1, :, 30:33, 20:23] = 0  # a gap of three pixels
    cells = Silhouette((3, 64, 64)).cells(dotted - 0.7)
    expected = field.unflatten(0, (16, 4)).unflatten(2, (16, 4)).mean((1, 3))
    assert torch.equal(cells[0], cells[1])
    torch.testing.assert_close(cells[0], expected, atol=0.15, rtol=0)
    assert cells[0].sum() == pytest.approx(expected.sum().item(), rel=0.02)


def test_a_silhouette_tells_a_field_that_is_cut_off_from_a_round_one():
    whole, cut = disc().expand(1, 3, 64, 64), disc().clone()
    cut[:12] = cut[-12:] = 0
    network = Silhouette((3, 64, 64))
    difference = network.cells(whole) - network.cells(cut.expand(1, 3, 64, 64))
    assert difference[0, :3].sum() > 5
    assert difference[0, 4:-4].abs().max() == 0


def test_noise_in_a_field_of_one_shape_has_one_silhouette():
    """As the local normalisation leaves photographs."""
    noise = torch.randn(20, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    cells = Silhouette((3, 128, 128)).cells(noise * disc(128, 0.92))
    assert cells.std(0).max() < 0.1


def test_statistics_are_those_of_the_channels_wherever_pixels_lie():
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    statistics = Colour.statistics(x).view(2, 7, 3)
    torch.testing.assert_close(statistics[:, 0], x.mean((2, 3)))
    torch.testing.assert_close(statistics[:, 1], x.flatten(2).std(2))
    torch.testing.assert_close(statistics[:, 4], x.flatten(2).quantile(0.5, dim=2))
    shuffled = x.flatten(2)[:, :, torch.randperm(64)].view_as(x)
    torch.testing.assert_close(Colour.statistics(shuffled), Colour.statistics(x))


@pytest.mark.parametrize("kind", [Silhouette, Colour])
@pytest.mark.parametrize("size", [8, 50])
def test_features_of_any_size_are_finite(kind, size):
    network = kind((3, size, size))
    for images in (torch.zeros(4, 3, size, size), torch.randn(4, 3, size, size)):
        features = network(images)
        assert features.shape == (4, 64)
        assert features.isfinite().all()
