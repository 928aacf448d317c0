"""EWC-DR remembers the Fisher information of reversed logits, averaged over the tasks."""

import torch
from scenarios import Learner, network
from torch.nn.functional import cross_entropy

from vcl_radial.curvature import diagonal_fisher


def learner(multi_head=True, **settings):
    return Learner("ewc_dr", network(None, multi_head, hidden=(8,)), batch_size=100, **settings)


def reversed_fisher(learned, task, classes=slice(None)):
    """The squared gradients of -log softmax(-z)_y, point by point, over some of the classes."""
    x, y, label = learned.points(task)
    total = {name: torch.zeros_like(w) for name, w in learned.parameters().items()}
    named = dict(learned.network.named_parameters())
    for point, target in zip(x.split(1), y.split(1), strict=True):
        logits = learned.method.output(point, label)[:, classes]
        loss = cross_entropy(-logits, target)
        for name, g in zip(
            named, torch.autograd.grad(loss, [*named.values()], allow_unused=True), strict=True
        ):
            if g is not None:
                total[name] += g.square()
    return total


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_it_remembers_the_fisher_of_reversed_logits():
    learned = learner().train(0)
    expected = reversed_fisher(learned, 0)
    for name, precision in learned.method.past.precision.items():
        close(precision, expected[name])
        assert precision.max() > 0


def test_the_body_has_the_mean_over_tasks_and_a_head_that_of_its_task():
    learned = learner().train(0)
    old = reversed_fisher(learned, 0)
    new = reversed_fisher(learned.train(1), 1)
    sizes = [len(learned.points(task).y) for task in (0, 1)]
    share = sizes[1] / sum(sizes)
    for name, precision in learned.method.past.precision.items():
        if "heads.0." in name:
            close(precision, old[name])
        elif "heads.1." in name:
            close(precision, new[name])
        else:
            close(precision, (1 - share) * old[name] + share * new[name])


def test_where_all_classes_are_equally_likely_it_is_the_fisher_of_ewc():
    fishers = {}
    for name in ("ewc", "ewc_dr"):
        made = Learner(name, network(None, hidden=(8,)), batch_size=100, lr=0.0)
        made.adapt(0)
        with torch.no_grad():
            head = made.network.head.head(0)
            head.weight.zero_()
            head.bias.zero_()
        fishers[name] = made.train(0).method.past.precision
    for name, precision in fishers["ewc"].items():
        close(fishers["ewc_dr"][name], precision)


def test_where_the_network_is_sure_it_remembers_and_ewc_does_not():
    """With logits a hundred times as large, EWC's Fisher vanishes against that of the size."""
    learned = learner(lr=1e-2, epochs=30).train(0)
    x, y, label = learned.points(0)
    with torch.no_grad():
        head = learned.network.head.head(0)
        head.weight.mul_(100)
        head.bias.mul_(100)
        right = (learned.method.output(x, label).argmax(1) == y).nonzero().flatten()
    points = [((x[right], label), y[right])]
    body = {n: w for n, w in learned.network.named_parameters() if n.startswith("body")}
    usual = diagonal_fisher(learned.network, body, points)
    reverse = reversed_fisher(learned, 0)
    assert all(1e3 * usual[name].sum() < reverse[name].sum() for name in body)


def test_classes_to_come_have_no_part_in_it():
    """One head for all: the softmax is over the classes that have come, and only these matter."""
    learned = learner(multi_head=False).train(0)
    precision = learned.method.past.precision["head.output.weight"]
    assert (precision[:2].sum(1) > 0).all()
    assert not precision[2:].any()
    close(precision, reversed_fisher(learned, 0, slice(2))["head.output.weight"])
    learned.train(1)
    assert learned.method.seen.tolist() == [0, 1, 2, 3]
    assert not learned.method.past.precision["head.output.weight"][4:].any()


def test_a_limit_holds_for_the_mean_over_the_points_of_a_task():
    free = learner().train(0)
    limited = learner(largest=1e-4).train(0)
    points = len(free.points(0).y)
    for name, precision in limited.method.past.precision.items():
        close(precision, free.method.past.precision[name].clamp(max=1e-4 * points))
    assert max(p.max() for p in free.method.past.precision.values()) > 1e-4 * points
