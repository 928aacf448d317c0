"""A method is tried on classes, numbers and convolutions, and the last line says what it serves."""

import pytest
import torch

from vcl_radial.conformance import iter_verdicts, recipe_for
from vcl_radial.conformance.streams import CLASSES, CONVOLUTIONS, NUMBERS, SEVERAL_HEADS
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.single_task import SingleTask
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP


def verdicts(name, *streams):
    recipe = recipe_for(name, {"posterior": "none"})
    return {verdict.name: verdict for verdict in iter_verdicts(recipe, streams)}


def faults(results):
    return {name: v.message for name, v in results.items() if v.outcome == "fault"}


def test_a_plain_method_that_is_in_order_serves_numbers_and_convolutions():
    results = verdicts("learners_of_numbers:Good", NUMBERS, CONVOLUTIONS)
    assert not faults(results)
    assert results["serves"].message == "numbers, convolutions"


@pytest.mark.parametrize(
    ("name", "stream", "check", "cause"),
    [
        ("CountsClasses", NUMBERS, "runs", "on numbers, in task 1: "),
        ("ForgetsTheNoise", NUMBERS, "checkpoint", "has another likelihood.points after"),
        ("WantsMatrices", CONVOLUTIONS, "runs", "with convolutions, in task 1: "),
    ],
)
def test_a_fault_that_one_stream_alone_shows_is_named_with_it(name, stream, check, cause):
    results = verdicts(f"learners_of_numbers:{name}", SEVERAL_HEADS, stream)
    assert list(faults(results)) == [check], faults(results)
    assert cause in faults(results)[check]
    assert results["serves"].message == "classes with several heads"


def test_a_mean_over_the_points_is_found_on_numbers_and_the_hook_has_its_name():
    message = faults(verdicts("learners_of_numbers:HasAMean", NUMBERS))["accumulates"]
    assert "though end_task() computes it from the points" in message


def test_a_penalty_that_nothing_is_stored_for_is_found_in_a_plain_method():
    message = faults(verdicts("learners_of_numbers:ForgetsToEndATask", NUMBERS))["consolidates"]
    assert "let end_task(task) store what penalty() reads" in message


def test_what_a_class_refuses_in_a_line_it_does_not_serve():
    of_classes = verdicts("lwf", SEVERAL_HEADS, NUMBERS)
    assert not faults(of_classes)
    assert of_classes["serves"].message == (
        "classes with several heads; not numbers: LwF does not serve a gaussian likelihood: it "
        "serves categorical"
    )
    of_numbers = verdicts("learners_of_numbers:OfNumbers", SEVERAL_HEADS, NUMBERS)
    assert not faults(of_numbers)
    assert of_numbers["serves"].message.startswith("numbers; not classes with several heads: Of")


def test_a_posterior_without_its_kl_is_served_nowhere_as_a_run_refuses_it():
    by_name = {v.name: v for v in iter_verdicts(recipe_for("naive", {"posterior": "gaussian"}))}
    assert "its penalty() has no KL to the prior: set posterior = 'none'" in by_name["runs"].message
    assert by_name["serves"].message == "nothing before the faults are fixed"


def test_a_network_that_one_head_alone_can_use_is_not_refused(user_module):
    user_module("flat", "from torch import nn\ndef body(shape):\n    return nn.Flatten()\n")
    settings = {"posterior": "none", "network": "flat:body"}
    recipe = recipe_for("broken_methods:Good", settings)  # Avalanche starts without heads
    by_name = {verdict.name: verdict for verdict in iter_verdicts(recipe, CLASSES)}
    assert not faults(by_name)
    assert by_name["serves"].message.startswith(
        "classes with one head; not classes with several heads"
    )
    with pytest.raises(UserError):
        next(iter_verdicts(recipe, [SEVERAL_HEADS]))


def test_an_avalanche_strategy_serves_classes_only():
    results = verdicts("broken_methods:Good", SEVERAL_HEADS, NUMBERS)
    assert "; not numbers: Good is an Avalanche strategy, which serves" in results["serves"].message


def test_a_method_that_no_stream_is_served_by_is_refused_in_its_own_words():
    with pytest.raises(UserError, match="LwF does not serve a gaussian likelihood"):
        verdicts("lwf", NUMBERS)


def test_each_task_alone_has_a_noise_of_its_own():
    method = SingleTask(
        MLP(1, 1, hidden=[4], multi_head=False, posterior="none"), likelihood=Gaussian()
    )
    x, noise = torch.zeros(50, 1), []
    for number, scale in enumerate([1.0, 0.1]):
        y = scale * torch.randn(50, generator=torch.Generator().manual_seed(0))
        task = Task(number, 50, lambda y=y: [Batch(x, y)])
        method.begin_task(task)
        method.likelihood.fit([(torch.zeros(1, 50, 1), y)])
        method.end_task(task)
        noise.append(float(method.likelihood.noise.mean))
    alone = [method.predict(x, number=number).scale.item() ** -2 for number in range(2)]
    assert alone == pytest.approx(noise, rel=1e-5)
    assert noise[1] / noise[0] == pytest.approx(100, rel=0.2)
