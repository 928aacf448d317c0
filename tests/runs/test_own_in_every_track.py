"""What a user writes once serves every track: a method, family, network, optimiser and recipe."""

import pytest
from small_data import small_mushrooms

from vcl_radial.cli import main

CODE = """
import torch
from vcl_radial.methods.base import Method
from vcl_radial.posteriors import Gaussian


class Mine(Gaussian):
    pass


def network(shape):
    class Body(torch.nn.Sequential):
        def __init__(self):
            inputs = torch.Size(shape).numel()
            super().__init__(torch.nn.Flatten(), torch.nn.Linear(inputs, 5), torch.nn.Tanh())

    return Body()


class Momentum(torch.optim.SGD):
    def __init__(self, params, lr):
        super().__init__(params, lr=1e-3 * lr, momentum=0.5)


def none(params, lr):
    return lr


class Pull(Method):
    def penalty(self):
        return 0.5 * sum(weight.square().sum() for weight in self.network.parameters())


class Forgets(Method):
    pass


class Words(Method):
    def penalty(self):
        return "abc"


class Three(Pull):
    def penalty(self):
        return super().penalty() * torch.ones(3)


class Detached(Pull):
    def penalty(self):
        return super().penalty().detach()


class NoNumber(Pull):
    def penalty(self):
        return super().penalty() * torch.nan
"""
MALFORMED = {
    "Words": "gives str: return one number as a tensor",
    "Three": "gives shape (3,): sum it to one number",
    "Detached": "without a gradient: compute it from the weights",
    "NoNumber": "is nan at the start of task 1: look at what it reads and what end_task() stores",
}
SMALL = {
    "split-digits-single-head": ["epochs=1", "hidden=[8]", "stream.tasks=2"],
    "diabetes": ["steps=20"],
    "retinopathy-synthetic": ["data.patients=60", "data.size=16", "epochs=1"],
    "bandit-mushroom": ["data.rounds=80", "steps=20"],
}


@pytest.fixture(autouse=True)
def _code(user_module, no_report, tmp_path, monkeypatch):
    user_module("own_everywhere", CODE)
    small_mushrooms(tmp_path / "data" / "bandits")
    monkeypatch.setenv("VCL_RADIAL_DATA", str(tmp_path / "data"))


def run(benchmark, method, to, *settings):
    command = ["run", benchmark, "--method", str(method), "--out", str(to), "--jobs", "1"]
    return main([*command, "--set", *SMALL[benchmark], *settings])


@pytest.mark.parametrize("benchmark", SMALL)
def test_a_family_of_the_users_own_is_carried(benchmark, tmp_path, capsys):
    family = "posterior=own_everywhere:Mine"
    assert run(benchmark, "gaussian-vcl", tmp_path, family) == 0
    assert run(benchmark, "gaussian-vcl", tmp_path / "no", f"{family}d") == 1
    assert "'own_everywhere' has no 'Mined'; did you mean 'Mine'?" in capsys.readouterr().err


@pytest.mark.parametrize("benchmark", SMALL)
def test_a_network_of_the_users_own_gets_the_posterior(benchmark, tmp_path):
    assert run(benchmark, "radial-vcl", tmp_path, "network=own_everywhere:network") == 0


@pytest.mark.parametrize("benchmark", SMALL)
def test_an_optimiser_of_the_users_own_trains(benchmark, tmp_path, capsys):
    tables = {}
    for name in ("own_everywhere:Momentum", "torch.optim:AdamW"):
        folder = tmp_path / name
        assert run(benchmark, "naive", folder, f"optimizer={name}") == 0
        tables[name] = [path.read_text() for path in sorted(folder.rglob("*.csv"))]
    assert tables["own_everywhere:Momentum"] != tables["torch.optim:AdamW"]
    assert run(benchmark, "naive", tmp_path, "optimizer=own_everywhere:none") == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("vcl-radial: naive: optimizer = 'own_everywhere:none' gives float")


@pytest.mark.parametrize("benchmark", SMALL)
def test_a_file_may_have_keys_that_other_tracks_count_by(benchmark, tmp_path):
    recipe = tmp_path / "pull.toml"
    lines = ["epochs = 1", "steps = 20", "hidden = [8]", "batch_size = 8"]
    lines += ['strategy = "own_everywhere:Pull"', 'posterior = "none"']
    recipe.write_text("\n".join(lines))
    assert run(benchmark, recipe, tmp_path / "runs") == 0


@pytest.mark.parametrize("benchmark", SMALL)
def test_a_posterior_is_not_trained_without_its_kl(benchmark, tmp_path, capsys):
    recipe = tmp_path / "forgets.toml"
    recipe.write_text('strategy = "own_everywhere:Forgets"')
    assert run(benchmark, recipe, tmp_path / "runs") == 1
    message = capsys.readouterr().err
    assert "Forgets trains a network with a posterior, and its penalty() has no KL" in message
    assert "kl_divergence(self.network, self.heads)" in message


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("benchmark", SMALL)
def test_a_malformed_penalty_is_one_line_and_no_run(benchmark, name, tmp_path, capsys):
    recipe = tmp_path / "bad.toml"
    recipe.write_text(f'strategy = "own_everywhere:{name}"\nposterior = "none"')
    assert run(benchmark, recipe, tmp_path / "runs") == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"bad seed 0: penalty() of {name} " in line
    assert MALFORMED[name] in line
    assert not [*(tmp_path / "runs").rglob("done")]
