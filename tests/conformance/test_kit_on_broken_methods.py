"""Each fault is found by the check that is there for it, by that alone, and named in words."""

import re
from functools import cache

import pytest
import torch

from vcl_radial.conformance import CHECKS, iter_verdicts, recipe_for
from vcl_radial.conformance.accumulation import accumulates
from vcl_radial.conformance.streams import NORMS, ONE_HEAD, SEVERAL_HEADS
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.verdict import Fault
from vcl_radial.system.seeds import isolated_rng

FAULTS = {
    "Raises": (
        "runs",
        r"in task 1: ZeroDivisionError: .*\(broken_methods.py, line \d+, in penalty",
    ),
    "LacksAMethod": ("runs", "AttributeError: 'LacksAMethod' object has no attribute 'importance'"),
    "Flattens": (
        "runs",
        r"in task 1: Flattens: network.body.0.weight had shape \(32, 64\) and has \(2048,\) after "
        r"task 1: write into parameters with copy_\(\)",
    ),
    "DoesNotSum": (
        "runs",
        r"in task 1: penalty\(\) of DoesNotSum gives shape \(2,\): sum it to one number",
    ),
    "BreaksAvalanche": (
        "runs",
        r"in task 2: BreaksAvalanche: TypeError: .*\((?!broken)\w+.py, line",
    ),
    "OnlyWithManyHeads": ("runs", "^with one head for all tasks, in task 1: AttributeError"),
    "RaisesWhenMade": ("runs", r"when it is made: KeyError: 'capacity' \(broken_methods.py, line"),
    "PenaltyIsNaN": (
        "finite numbers",
        r"^penalty\(\) of PenaltyIsNaN is nan at the start of task 2: .* consolidate\(\) stores",
    ),
    "IsNaNAtOnce": (
        "finite numbers",
        r"^penalty\(\) of IsNaNAtOnce is nan at the start of task 1: .* what end_task\(\) stores",
    ),
    "ConsolidatesNaN": (
        "finite numbers",
        r"network.body.0.bias held nan or inf after task 1: look at consolidate\(\)",
    ),
    "PredictsNaN": ("finite numbers", "in evaluation before training: predictions are not numbers"),
    "Reshapes": ("shapes", r"body.0.bias had shape \(32,\) and has \(1, 32\) after task 1"),
    "DropsAParameter": ("shapes", "network.body.0.bias is gone after task 1"),
    "AltersTheStream": ("data", r"tensor_stream.x was altered: work on a copy"),
    "AltersInputsInEvaluation": ("data", "evaluation altered the inputs or labels"),
    "LearnsTheOppositeLabels": ("learns", r"^\d % of task 1 right after 20 epochs, where chance"),
    "DecaysEveryHead": (
        "heads stay apart",
        "training task 1 altered network.head.heads.1.weight, of the head of task 2",
    ),
    "DecaysHeadsToCome": (
        "heads stay apart",
        "training task 1 altered network.head.heads.2.weight, of the head of task 3",
    ),
    "ShrinksEveryWeight": (
        "frozen weights",
        r"^training altered network.body.0.\w+, which is frozen \(requires_grad = False\)",
    ),
    "DrawsUnseeded": ("seeds", r"the same seed gave another network.body.0.\w+ after task 1"),
    "SetsASeedOfItsOwn": ("seeds", "another seed gave the same numbers"),
    "DrawsInEvaluation": ("evaluation", "altered the state of PyTorch's random numbers"),
    "LeavesEvaluationMode": ("evaluation", "altered the training mode of the model"),
    "WritesInEvaluation": ("evaluation", "altered network.body.0.bias: put it back"),
    "ForgetsInEvaluation": ("evaluation", "task 2 ended with another network.body.0.weight"),
    "LooksInTrainingMode": (
        "batch norms",
        r"^with a batch norm, consolidate\(\) altered network.body.2.running_mean: it begins",
    ),
    "AveragesWhatItEvaluates": (
        "evaluation",
        r"^with a batch norm, evaluating altered network.body.2.running_mean: put it back",
    ),
    "ForgetsItsState": ("checkpoint", "another network.body.0.weight after task 2 than one that"),
    "KeepsAnObject": (
        "checkpoint",
        r"state_dict\(\)\['memory'\]\[0\] is a broken_methods.Memory: a checkpoint holds plain",
    ),
    "CannotGoOn": (
        "checkpoint",
        r"KeyError: 'older' \(broken_methods.py, line \d+, in load_state_dict\)",
    ),
    "PredictsWithoutItsState": ("checkpoint", "predicts otherwise than one that was never stopped"),
    "ForgetsToConsolidate": ("consolidates", "trained as if task 1 had never been"),
    "RemembersTheWrongWeights": ("consolidates", "lower near by, but it should be minimal there"),
    "SaysItRemembersNothing": ("consolidates", "says memoryless = True, but task 2 is trained"),
    "AnchorsEveryHead": (
        "consolidates",
        r"no task has trained .*: network.head.heads.1.\* of task 2 and network.head.heads.2.\* of "
        "task 3; let consolidate",
    ),
    "FisherOfMiniBatches": (
        "accumulates",
        r"in batches of 16 points, and [\d.]+ after batches of 64",
    ),
    "MeanFisherOfMiniBatches": (
        "accumulates",
        "sum over single points; the square of a mini-batch",
    ),
    "FisherOfGroups": (
        "accumulates",
        "once, twice and three times, and should rise by equal amounts",
    ),
    "MeanFisher": (
        "accumulates",
        "let it sum over them, not take their mean .* memory_is_mean = True",
    ),
    "DividesByN": ("penalty", "divided by N already"),
    "MultipliesByN": ("penalty", "a factor of N undoes that .* penalty_grows_with_points = True"),
    "DividesByTheBatch": ("penalty", "not on the mini-batch or its size"),
    "HasNoGradient": ("penalty", r"gives [\d.e-]+ without a gradient: .* without no_grad\(\)"),
    "IsConstant": ("penalty", r"gives 5 without a gradient: compute it from the weights"),
    "HidesItsGradient": (
        "penalty",
        r"a slope of 0 where its values rise by .* without no_grad\(\)",
    ),
    "GivesANumber": ("penalty", r"gives [\d.]+ as a plain number, which has no gradient"),
    "ReturnsNothing": ("penalty", "gives NoneType: return one number as a tensor"),
    "HasAnotherGradientWithoutItsValue": ("penalty", "differs by 100 % from that with True"),
    "LeavesTheScaleOut": ("penalty", r"the loss holds [\d.]+ nats per point of the penalty, where"),
    "SumsOverTheBatch": ("penalty", "take means over the batch, not sums"),
}


IN_BOTH = {"Good", "Laplace", "OnlyWithManyHeads", "ConsolidatesNoExperience"}
"""Methods that are tried with one head for all tasks too; a fault shows with several heads."""


WITH_NORMS = {"LooksInTrainingMode", "AveragesWhatItEvaluates"}
"""Methods whose faults show where a network has a batch norm."""


def streams_of(name):
    if name in WITH_NORMS:
        return [NORMS]
    return [SEVERAL_HEADS, ONE_HEAD] if name in IN_BOTH else [SEVERAL_HEADS]


def looked_at(name, **settings):
    recipe = recipe_for(f"broken_methods:{name}", {"posterior": "none", **settings})
    streams = [SEVERAL_HEADS] if settings else streams_of(name)
    return {verdict.name: verdict for verdict in iter_verdicts(recipe, streams)}


verdicts = cache(looked_at)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_its_own_check_alone_and_named(name):
    expected, words = FAULTS[name]
    found = verdicts(name)
    checks = [each.name for each in CHECKS if {*each.streams} & {*streams_of(name)}]
    assert list(found) == [*checks, "serves"]
    faults = {v.name: v.message for v in found.values() if v.outcome == "fault"}
    assert list(faults) == [expected], faults
    assert re.search(words, faults[expected]), faults[expected]
    assert "\n" not in faults[expected]


def test_every_check_can_fail():
    assert {check for check, _ in FAULTS.values()} == {each.name for each in CHECKS}


def test_a_method_that_is_in_order_passes_every_check():
    assert {v.outcome for v in verdicts("Good").values()} == {"ok"}


def sum_over_points(name, **settings):
    """What the one check says of it, or the fault that it finds."""
    recipe = recipe_for(f"broken_methods:{name}", {"posterior": "none", **settings})
    with isolated_rng():
        return accumulates(Subject(recipe))


def test_a_laplace_approximation_that_is_right_passes_every_check():
    assert {v.outcome for v in looked_at("Laplace").values()} == {"ok"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision"),
    [("Laplace", 0.01), ("LaplaceWithDecay", 100.0), ("LaplaceWithDrawnLabels", 1.0)],
)
def test_a_sum_over_the_points_is_in_order_whatever_the_prior(name, precision):
    words = sum_over_points(name, **{"options.prior_precision": precision})
    assert "grows in proportion with the points" in words


@pytest.mark.slow
@pytest.mark.parametrize("precision", [0.01, 10.0])
def test_no_first_prior_hides_a_mean_or_a_batch(precision):
    for name in ("MeanFisher", "FisherOfMiniBatches"):
        with pytest.raises(Fault):
            sum_over_points(name, **{"options.prior_precision": precision})


@pytest.mark.slow
def test_a_mean_is_found_behind_random_numbers():
    with pytest.raises(Fault, match="not take their mean"):
        sum_over_points("MeanFisherWithDrawnLabels")


def test_a_method_may_say_that_its_memory_is_a_mean(monkeypatch):
    import broken_methods

    class Published(broken_methods.MeanFisher):
        memory_is_mean = True

    class InBatches(broken_methods.FisherOfMiniBatches):
        memory_is_mean = True

    for own in (Published, InBatches):
        monkeypatch.setattr(broken_methods, own.__name__, own, raising=False)
    assert "a mean over the points, as the class says" in sum_over_points("Published")
    with pytest.raises(Fault, match="after batches of 64"):
        sum_over_points("InBatches")


def test_what_consolidate_does_not_compute_from_the_points_need_not_grow_with_them():
    assert "computes nothing from the points" in verdicts("Good")["accumulates"].message


def test_a_check_that_waits_names_the_one_that_it_waits_for():
    for name, cause in (("PenaltyIsNaN", "finite numbers"), ("Raises", "runs")):
        found = verdicts(name)
        assert found["data"].message == f"not looked at before {cause!r} is fixed"


def test_a_method_may_say_that_it_trains_old_heads(monkeypatch):
    import broken_methods

    class DecaysOldHeads(broken_methods.Good):
        @torch.no_grad()
        def _after_update(self, **kwargs):
            super()._after_update(**kwargs)
            if self.tasks != [0]:
                self.network.head.head(0).bias.add_(1e-3)

    monkeypatch.setattr(broken_methods, "DecaysOldHeads", DecaysOldHeads, raising=False)
    assert looked_at("DecaysOldHeads")["heads stay apart"].outcome == "fault"
    DecaysOldHeads.trains_old_heads = True
    verdict = looked_at("DecaysOldHeads")["heads stay apart"]
    assert (verdict.outcome, "as the class says" in verdict.message) == ("ok", True)


def test_a_fault_does_not_keep_the_other_checks_from_going_on():
    outcomes = [v.outcome for v in verdicts("DrawsInEvaluation").values()]
    assert (outcomes.count("fault"), outcomes.count("skipped")) == (1, 0)
    found = verdicts("DrawsUnseeded")
    assert found["learns"].outcome == "ok"
    assert "not looked at before 'seeds' is fixed" in found["checkpoint"].message


def test_a_strong_penalty_is_no_fault_and_neither_is_a_weak_one():
    for strength in (1e-3, 1e4):
        found = looked_at("Good", **{"options.strength": strength})
        assert {v.outcome for v in found.values()} == {"ok"}


def test_checking_leaves_the_random_numbers_of_its_caller_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    list(iter_verdicts(recipe_for("naive"), [SEVERAL_HEADS]))
    assert torch.equal(torch.rand(3), expected)


def test_a_method_may_say_that_its_penalty_is_minimal_elsewhere(monkeypatch):
    import broken_methods

    class AlsoDecays(broken_methods.Good):
        def penalty(self):
            return super().penalty() + 1e3 * sum(
                w.square().sum() for w in self.network.body.parameters()
            )

    monkeypatch.setattr(broken_methods, "AlsoDecays", AlsoDecays, raising=False)
    found = looked_at("AlsoDecays")["consolidates"]
    assert (found.outcome, "penalty_off_minimum" in found.message) == ("fault", True)
    AlsoDecays.penalty_off_minimum = True
    assert looked_at("AlsoDecays")["consolidates"].outcome == "ok"


def test_a_method_may_say_that_its_penalty_grows_with_the_points(monkeypatch):
    import broken_methods

    class Grows(broken_methods.MultipliesByN):
        penalty_grows_with_points = True

    monkeypatch.setattr(broken_methods, "Grows", Grows, raising=False)
    found = looked_at("Grows")["penalty"]
    assert (found.outcome, "as the class says" in found.message) == ("ok", True)
