import numpy as np
import pytest
import torch
from scipy import stats

from vcl_radial import native

pytestmark = pytest.mark.skipif(native.unavailable() is not None, reason=str(native.unavailable()))


def normals(n, seed=0):
    out = torch.empty(n)
    native.standard_normal(out, torch.Generator().manual_seed(seed))
    return out


@pytest.mark.parametrize("seed", range(4))
def test_they_are_standard_normal_out_to_the_tails(seed):
    z = normals(1_000_003, seed).double().numpy()
    n = len(z)
    assert stats.kstest(z, "norm").pvalue > 1e-4
    # Each of these is about N(0, 1) if z is.
    assert abs(z.mean() * n**0.5) < 4.5
    assert abs((z.var() - 1) * (n / 2) ** 0.5) < 4.5
    assert abs(stats.skew(z) * (n / 6) ** 0.5) < 4.5
    assert abs(stats.kurtosis(z) * (n / 24) ** 0.5) < 4.5
    beyond = 2 * stats.norm.sf(4) * n
    assert abs((abs(z) > 4).sum() - beyond) < 5 * beyond**0.5
    assert np.isfinite(z).all()


@pytest.mark.parametrize("lag", [1, 2, 7, 250_000, 250_001, 500_001, 500_002])
def test_no_two_of_them_are_related(lag):
    """Not neighbours, nor those that come from one counter, a quarter of the draw apart."""
    z = normals(1_000_003).double()
    a, b = z[:-lag], z[lag:]
    for f in (lambda x: x, lambda x: x.square() - 1, lambda x: x.abs() - (2 / torch.pi) ** 0.5):
        product = f(a) * f(b)
        assert abs(product.mean() / product.std() * len(a) ** 0.5) < 4.5


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 63, 64, 65, 4095, 4096, 4097, 5000])
def test_all_places_are_filled_and_none_beyond(n):
    out = torch.full((n + 8,), torch.nan)
    native.standard_normal(out[:n], torch.Generator().manual_seed(n))
    assert torch.isfinite(out[:n]).all()
    assert torch.isnan(out[n:]).all()
    assert len(out[:n].unique()) > 0.999 * n - 1


def test_they_depend_on_the_generator_alone():
    assert torch.equal(normals(100, 1), normals(100, 1))
    assert not torch.equal(normals(100, 1), normals(100, 2))
    torch.manual_seed(7)
    first = torch.empty(50)
    native.standard_normal(first)
    second = torch.empty(50)
    native.standard_normal(second)
    assert not torch.equal(first, second)
    torch.manual_seed(7)
    again = torch.empty(50)
    native.standard_normal(again)
    assert torch.equal(first, again)


def test_philox_is_the_published_generator():
    """Random123's known answer: counter 0 and key 0 give the words 6627e8d5 e169c58d bc57ac4c
    9b00dbd8, and Box and Muller's transform of those is computed here once more."""
    out = torch.empty(4)
    native.library().vcl_normal(out.data_ptr(), 4, 0)
    words = np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], dtype=np.uint64)
    expected = []
    for a, b in (words[:2], words[2:]):
        u = ((int(a) >> 8) + 0.5) / 2**24
        quarter, rest = int(b) >> 30, ((int(b) >> 6) & 0xFFFFFF) / 2**24 - 0.5
        angle = np.pi / 2 * (quarter + rest)
        length = np.sqrt(-2 * np.log(u))
        expected += [length * abs(np.sin(angle)), length * abs(np.cos(angle))]
    # Which of the pair is the sine, and the signs, are matters of convention.
    found = out.double().abs().numpy().reshape(2, 2)
    pairs = np.array(expected).reshape(2, 2)
    np.testing.assert_allclose(np.sort(found), np.sort(pairs), rtol=1e-5, atol=1e-6)
