"""A strategy of a user's own in a loop of plain PyTorch: the photographs are trained by it."""

import copy
from functools import partial

import pytest
import torch
from failing import refuses
from scenarios import Learner, network
from torch.utils.data import DataLoader

from vcl_radial.integrations.avalanche import ContinualStrategy
from vcl_radial.integrations.avalanche.as_method import method_of
from vcl_radial.integrations.avalanche.methods import EWC as EWCStrategy
from vcl_radial.integrations.avalanche.methods import VCL as VCLStrategy
from vcl_radial.integrations.avalanche.methods import BAdam
from vcl_radial.methods.base import Method
from vcl_radial.methods.ewc import EWC
from vcl_radial.methods.vcl import VCL


def pull(learner):
    """3 ||w - w_old||^2 of whatever keeps `old` weights."""
    weights = learner.network.named_parameters()
    return 3 * sum((w - learner.old[n]).square().sum() for n, w in weights if n in learner.old)


def moved(learner):
    """The old weights of whatever keeps them, with those that the task has trained."""
    return learner.old | {n: w.detach().clone() for n, w in learner.trained_parameters().items()}


class Pull(ContinualStrategy):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.old = {}

    penalty = pull

    def consolidate(self, experience):
        self.old = moved(self)

    def state_dict(self):
        return super().state_dict() | {"old": self.old}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.old = state["old"]


class PullMethod(Method):
    def __init__(self, net, **settings):
        super().__init__(net, **settings)
        self.old = {}

    penalty = pull

    def end_task(self, task):
        self.old = moved(self)


def learner(kind, multi_head=True, posterior=None, **settings):
    make = kind if issubclass(kind, Method) else partial(method_of, kind)
    return Learner(make, network(posterior, multi_head), **{"lr": 1e-2, **settings})


def test_it_ends_with_the_numbers_of_the_same_idea_as_a_method(multi_head):
    both = [learner(kind, multi_head).train(0, 1, 2) for kind in (Pull, PullMethod)]
    assert torch.equal(*(made.weights() for made in both))
    assert torch.equal(*(made.predictions(0) for made in both))
    free = learner(ContinualStrategy, multi_head).train(0, 1, 2)
    assert not torch.equal(free.weights(), both[0].weights())


def test_it_goes_on_in_the_middle_of_a_task_with_the_same_numbers():
    whole = learner(Pull).train(0)
    carried = copy.deepcopy(whole.method.state_dict())
    torch.manual_seed(1)
    whole.begin(1)
    whole.loop.learn(whole.batches(), 0.0)
    stored = copy.deepcopy(whole.loop.state_dict())
    other = learner(Pull)
    other.method.load_state_dict(carried)
    other.begin(1)
    other.loop.load_state_dict(stored)
    for made in (whole, other):
        torch.manual_seed(2)
        made.loop.learn(made.batches(), 0.5)
        made.loop.end()
    first, second = (made.method.state_dict() for made in (whole, other))
    for part in ("model", "old"):
        tensors = {name: w for name, w in first[part].items() if isinstance(w, torch.Tensor)}
        assert all(torch.equal(w, second[part][name]) for name, w in tensors.items())


def test_a_task_is_consolidated_once_with_its_points_at_hand():
    seen = []

    class Reads(ContinualStrategy):
        def consolidate(self, experience):
            loaded = DataLoader(experience.dataset, batch_size=50)
            for batches in (loaded, self.dataloader, DataLoader(self.adapted_dataset)):
                x, y, labels = map(torch.cat, zip(*batches, strict=True))
                assert torch.equal(x, made.points(experience.task_label).x)
                assert torch.equal(y, made.points(experience.task_label).y)
                assert set(labels.tolist()) == {*self.tasks}
            assert self.optimizer is made.optimizer
            seen.append((experience.current_experience, experience.task_labels))

    made = learner(Reads)
    made.train(0, 1)
    assert seen == [(0, [0]), (1, [1])]


def test_a_penalty_reads_the_batch_of_its_step():
    batches = []

    class Reads(ContinualStrategy):
        def penalty(self):
            batches.append((self.mb_x, self.mb_y, self.mb_task_id))
            return self.mb_output.square().sum() + self.model(self.mb_x, self.mb_task_id).sum()

    made = learner(Reads).train(1)
    assert torch.equal(batches[0][0], batches.pop(1)[0])  # a look at it after the first step
    assert len(batches) == len(made.seen) > 1
    for (x, y, labels), inputs in zip(batches, made.seen, strict=True):
        assert torch.equal(x, inputs)
        assert len(y) == len(labels) == len(x)
        assert set(labels.tolist()) == {1}


def test_what_the_class_does_not_state_is_that_of_the_method_it_is_derived_from():
    ended = []

    class Counts(EWCStrategy):
        def consolidate(self, experience):
            super().consolidate(experience)
            ended.append(experience.current_experience)

    both = [learner(kind, gamma=0.5).train(0, 1) for kind in (Counts, EWC)]
    first, second = (made.method.past.precision for made in both)
    assert all(torch.equal(precision, second[name]) for name, precision in first.items())
    assert torch.equal(*(made.predictions(0) for made in both))
    assert ended == [0, 1]


@pytest.mark.parametrize("hook", ["_before_training_exp", "backward", "make_optimizer", "train"])
def test_a_hook_that_the_loop_does_not_call_is_refused_by_name(hook):
    other = type("Other", (Pull,), {hook: lambda self, *args, **kwargs: None})
    with refuses("Other", f"{hook}()"):
        method_of(other, network(None))


def test_a_posterior_without_its_kl_is_refused_where_the_first_task_begins():
    with refuses("Pull", "posterior", "KL"):
        learner(Pull, posterior="radial").begin(0)


def test_a_posterior_is_trained_as_by_the_method_that_the_class_is_derived_from():
    kinds = (type("Mine", (VCLStrategy,), {}), VCL)
    both = [learner(kind, posterior="radial").train(0, 1) for kind in kinds]
    assert torch.equal(*(made.weights() for made in both))


def test_names_that_avalanche_does_not_know_are_the_users_own():
    helper = type("Helper", (Pull,), {"distance": lambda self: 0.0, "memoryless": True})
    assert isinstance(method_of(helper, network(None)), Method)


def test_an_optimiser_that_the_method_cannot_read_is_refused():
    made = learner(type("Mine", (BAdam,), {}), optimizer=torch.optim.SGD)
    with refuses("Adam"):
        made.begin(0)
