"""Digits in tasks, networks for them, and a method that learns them in plain PyTorch."""

from functools import cache, partial

import torch
from torch.distributions import MultivariateNormal
from torch.nn.functional import nll_loss
from torch.optim import Adam

from vcl_radial.conformance import recipe_for
from vcl_radial.data.streams import build_stream
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.objectives import gaussian_nll
from vcl_radial.methods.options import options_of
from vcl_radial.methods.registry import built_in, built_in_class
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP, MultiHead, PosteriorSettings
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.optimizers.schedules import constant
from vcl_radial.training.loop import TaskLoop, selected

ADAM = partial(Adam, fused=True)
ALL = 10_000
"""A batch size that no task has points for: its batch is the task."""

QUADRATIC = {
    **{"l2": 100.0, "ewc": 50.0, "ewc_separate": 50.0, "si": 3.0, "mas": 0.03},
    **{"ewc_dr": 1.0, "rwalk": 1.0},
}
"""Strengths at which each keeps its tasks."""


OF_CLASSES = [name for name in built_in() if "categorical" in built_in_class(name).likelihoods]
"""The suite's own methods that learn classes."""


AT_MOST = {"coreset_epochs": 2, "units": 50, "filters": 8}
"""Sizes that some methods have of their own, in tests."""


def quick_recipe(name, keys=None):
    """The recipe of a shipped method, with these keys in it, and no larger than a test needs."""
    recipe = recipe_for(name)
    taken = options_of(built_in_class(recipe.strategy))
    sizes = {key: recipe.options.get(key, taken[key].default) for key in AT_MOST if key in taken}
    small = {f"options.{key}": min(size, AT_MOST[key]) for key, size in sizes.items()}
    return recipe_for(name, small | (keys or {}))


class KnownNoise(Gaussian):
    """y ~ N(f, deviation^2)."""

    def __init__(self, deviation):
        super().__init__()
        self.deviation = deviation

    def nll(self, outputs, targets):
        return gaussian_nll(outputs.squeeze(-1), targets, self.deviation)

    def observe(self, outputs, targets):
        """Nothing is to be learned."""

    def hessian_root(self, outputs, targets):
        """The NLL curves by 1 / deviation^2."""
        return [torch.full_like(outputs, 1 / self.deviation)]


class CorrelatedRows:
    """y = x w + noise with inputs that go together, in another way in each of two tasks."""

    columns, rows, noise = 4, 25, 1.0

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        weights = torch.randn(self.columns, generator=generator)
        self.x, self.y = [], []
        for _ in range(2):
            common = torch.randn(self.rows, 1, generator=generator)
            signs = torch.randn(self.columns, generator=generator).sign()
            x = common * signs + 0.5 * torch.randn(self.rows, self.columns, generator=generator)
            self.x.append(x)
            self.y.append(x @ weights + self.noise * torch.randn(self.rows, generator=generator))

    def inputs(self, number, part):
        return self.x[number]

    def labels(self, number, part):
        return self.y[number]

    def task_label(self, number):
        return 0

    def batch_posterior(self):
        """Of all rows at once, by Bayes' rule."""
        x, y = torch.cat(self.x).double(), torch.cat(self.y).double()
        precision = torch.eye(self.columns, dtype=torch.float64) + x.mT @ x / self.noise**2
        mean = torch.linalg.solve(precision, x.mT @ y / self.noise**2)
        return MultivariateNormal(mean, precision_matrix=precision)


@cache
def digits(heads="multi", kind="split", flatten=True):
    """Five tasks of scikit-learn's digits: two digits each, or all of them with pixels permuted."""
    keys = {"kind": kind, "dataset": "digits", "tasks": 5, "heads": heads}
    return build_stream(keys | {"flatten": flatten})


def network(posterior="radial", multi_head=True, hidden=(32,), point_heads=False, **settings):
    """An MLP for the digits, the same at every call."""
    torch.manual_seed(0)
    if isinstance(posterior, str):
        posterior = PosteriorSettings(posterior, **settings)
    classes = 2 if multi_head else 10
    settings = {"multi_head": multi_head, "point_heads": point_heads}
    return MLP(64, classes, hidden=hidden, posterior=posterior, **settings)


@cache
def posterior_for(name):
    """The first posterior of a network that a method takes."""
    by_units = PosteriorSettings("low-rank", "unit", rank=3)
    noisy = PosteriorSettings("gaussian", initial_noise=0.1)
    for posterior in (None, "radial", RDPSettings("row", 0.05), by_units, noisy):
        try:
            built_in_class(name)(network(posterior))
        except UserError:
            continue
        return posterior
    raise AssertionError(f"{name} takes no network")


def copies(module):
    return {name: weight.detach().clone() for name, weight in module.named_parameters()}


class Learner:
    """Trains a method as `TaskLoop` says; a number of the stream is a task.

    Args:
        kind: the class of a method, or its name.
        net: that learns.
        stream: of tasks; by default the digits in the form that the network takes.
        optimizer: called with parameters and the learning rate.
        settings: the method's.
    """

    def __init__(
        self,
        kind,
        net=None,
        stream=None,
        *,
        lr=1e-3,
        optimizer=ADAM,
        epochs=1,
        batch_size=32,
        schedule=constant,
        **settings,
    ):
        if isinstance(kind, str):
            net = network(posterior_for(kind)) if net is None else net
            kind = built_in_class(kind)
        net = network() if net is None else net
        self.method = kind(net, **{"eval_samples": 5, **settings})
        self.network = self.method.network
        heads = any(isinstance(module, MultiHead) for module in self.network.modules())
        self.stream = stream or digits("multi" if heads else "single")
        self.make = lambda module: optimizer(module.parameters(), lr=lr)
        self.epochs, self.batch_size, self.schedule = epochs, batch_size, schedule
        self.losses = []
        """Of the steps of the last task, in nats per point."""
        self.seen = []
        """The inputs of those steps."""

    def points(self, *numbers):
        """All training points of some tasks, with the label of one head, or one for each row."""
        x = torch.cat([self.stream.inputs(number, "train") for number in numbers])
        y = [self.stream.labels(number, "train") for number in numbers]
        labels = [self.stream.task_label(number) for number in numbers]
        if len(numbers) == 1:
            return Batch(x, y[0], labels[0])
        rows = torch.tensor(labels).repeat_interleave(torch.tensor([len(each) for each in y]))
        return Batch(x, torch.cat(y), rows)

    def begin(self, *numbers):
        """Begin a task; several numbers are one task of all their points."""
        self.whole = whole = selected(self.method, self.points(*numbers))
        task = Task(
            number=numbers[0],
            points=len(whole.y),
            batches=lambda: whole.split(self.batch_size),
            heads=sorted(set(whole.labels.tolist())),
            steps=self.epochs * -(-len(whole.y) // self.batch_size),
            epochs=self.epochs,
            batch_size=self.batch_size,
            schedule=self.schedule,
        )
        self.loop = TaskLoop(self.method, task, self.make)
        self.losses, self.seen = [], []
        return task

    @property
    def optimizer(self):
        """Of the last task."""
        return self.loop.optimizer

    def batches(self):
        """Of an epoch."""
        return map(self.whole.at, torch.randperm(len(self.whole.y)).split(self.batch_size))

    def train(self, *numbers, after_step=lambda: None):
        """Learn tasks one after another, or all together where the method wants that."""
        whole_stream = getattr(self.method, "needs_whole_stream", False)
        for group in [numbers] if whole_stream else [(number,) for number in numbers]:
            torch.manual_seed(group[0])  # the randomness of a task is its own, wherever it comes
            self.begin(*group)
            self.loop.warm_up(self._observed)
            for epoch in range(self.epochs):
                self.loop.learn(self._observed(after_step), epoch / self.epochs)
            self.loop.end()
        return self

    def _observed(self, after_step=lambda: None):
        """Of an epoch, and what is noted after the step on each."""
        for batch in self.batches():
            yield batch
            self.losses.append(self.loop.loss.squeeze())
            self.seen.append(batch.x)
            after_step()

    def standing_loss(self, number, batch_size=ALL, begin=True):
        """The mean loss of a pass over a task without a step, all under the same draws."""
        self.batch_size = batch_size
        if begin:
            self.begin(number)
        self.method.step = lambda optimizer: None
        total = 0.0
        for batch in self.batches():
            torch.manual_seed(5)
            total += self.method.learn(batch, self.loop.optimizer) * len(batch.y)
        del self.method.step
        return total.squeeze() / len(self.whole.y)

    def predictions(self, *numbers):
        """The log-predictive of the test points of some tasks, `[B, C]`."""
        training, found = self.method.network.training, []
        self.method.network.eval()
        for number in numbers:
            head = self.stream.task_label(number)
            self.adapt(head)
            x = self.stream.inputs(number, "test")
            found.append(self.method.predict(x, head, number=number))
        self.method.network.train(training)
        return torch.cat(found)

    def adapt(self, *heads):
        for module in self.network.modules():
            if isinstance(module, MultiHead):
                module.adapt(heads)

    def nll(self, *numbers):
        """Of the test points, in nats per point."""
        return nll_loss(self.predictions(*numbers), self.targets(*numbers)).item()

    def accuracy(self, *numbers):
        """Of the test points, in per cent."""
        right = self.predictions(*numbers).argmax(-1) == self.targets(*numbers)
        return 100 * right.double().mean().item()

    def targets(self, *numbers):
        return torch.cat([self.stream.labels(number, "test") for number in numbers])

    def parameters(self):
        """Copies, by name."""
        return copies(self.network)

    def weights(self):
        """All of them in one vector."""
        return torch.cat([weight.flatten() for weight in self.parameters().values()])


def in_the_middle(make, task, path):
    """A learner of some tasks, and one that goes on from its state in the middle of the last one.

    Args:
        make: gives a new learner.
        task: the last one.
        path: of a file for the state.
    """

    def half(learner):
        torch.manual_seed(4)
        learner.loop.learn(learner.batches(), 0.0)

    whole, again = make().train(*range(task)), make()
    torch.manual_seed(3)
    whole.begin(task)
    half(whole)
    torch.save(whole.loop.state_dict(), path)
    again.begin(task)
    again.loop.load_state_dict(torch.load(path, weights_only=True))
    for learner in (whole, again):
        half(learner)
        learner.loop.end()
    return whole, again
