from vcl_radial.nn import MLP, parameters_in_use


def test_parameters_in_use_are_the_bodys_and_the_heads_of_the_tasks():
    network = MLP(6, 2, hidden=(5,), posterior=None)
    network.head.adapt([0, 1, 10])
    network.body[0].bias.requires_grad_(False)
    assert set(parameters_in_use(network, [1])) == {
        "body.0.weight",
        "head.heads.1.weight",
        "head.heads.1.bias",
    }
    single = MLP(6, 2, hidden=(5,), multi_head=False, posterior=None)
    assert parameters_in_use(single, [7]) == dict(single.named_parameters())
