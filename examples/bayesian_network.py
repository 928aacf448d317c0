"""Give an ordinary network a radial posterior and train it.

python examples/bayesian_network.py
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import Adam

from vcl_radial.data.streams import build_stream
from vcl_radial.likelihoods.predict import log_predictive
from vcl_radial.nn import kl_divergence
from vcl_radial.nn.convert import to_bayesian

torch.manual_seed(0)
stream = build_stream({"kind": "split", "dataset": "digits", "heads": "single", "tasks": 1})
x, y = stream.inputs(0, "train"), stream.labels(0, "train")
network = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))

network = to_bayesian(network, "radial")
optimizer = Adam(network.parameters(), lr=3e-3)
for _ in range(300):
    loss = cross_entropy(network(x), y) + kl_divergence(network, []) / len(y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

predicted = log_predictive(network, stream.inputs(0, "test"), samples=50).argmax(1)
accuracy = (predicted == stream.labels(0, "test")).float().mean()
print(f"{100 * accuracy:.1f} % of the test digits, with 50 draws of the weights")
