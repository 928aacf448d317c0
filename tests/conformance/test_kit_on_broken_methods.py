"""The check that is there for a fault finds it, and no other check does."""

from functools import cache

import pytest
import torch

from vcl_radial.conformance import CHECKS, iter_verdicts, recipe_for
from vcl_radial.conformance.accumulation import accumulates
from vcl_radial.conformance.memory import consolidates, heads
from vcl_radial.conformance.scale import penalty
from vcl_radial.conformance.streams import NORMS, ONE_HEAD, SEVERAL_HEADS
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.verdict import Fault
from vcl_radial.system.seeds import isolated_rng

FAULTS = {
    "Raises": ("runs", "in task 1: Raises: ZeroDivisionError"),
    "LacksAMethod": ("runs", "'importance'"),
    "Flattens": ("runs", "body.0.weight"),
    "DoesNotSum": ("runs", "(2,)"),
    "BreaksAvalanche": ("runs", "in task 2: BreaksAvalanche: TypeError"),
    "OnlyWithManyHeads": ("runs", "with one head for all tasks, in task 1: "),
    "RaisesWhenMade": ("runs", "when it is made: "),
    "PenaltyIsNaN": ("runs", "nan at the start of task 2"),
    "IsNaNAtOnce": ("runs", "nan at the start of task 1"),
    "ConsolidatesNaN": ("runs", "body.0.bias"),
    "PredictsNaN": ("runs", "in evaluation before training: "),
    "Reshapes": ("runs", "body.0.bias"),
    "DropsAParameter": ("runs", "body.0.bias"),
    "HasNoGradient": ("runs", "without a gradient"),
    "IsConstant": ("runs", "without a gradient"),
    "GivesANumber": ("runs", "plain number"),
    "ReturnsNothing": ("runs", "NoneType"),
    "ForgetsToConsolidate": ("runs", "memoryless = True"),
    "AltersTheStream": ("data", "tensor_stream.x"),
    "AltersInputsInEvaluation": ("data", "an evaluation"),
    "LearnsTheOppositeLabels": ("learns", "chance"),
    "DecaysEveryHead": ("heads stay apart", "head.heads.1.weight"),
    "DecaysHeadsToCome": ("heads stay apart", "head.heads.2.weight"),
    "ShrinksEveryWeight": ("frozen weights", "body.0."),
    "DrawsUnseeded": ("seeds", "the same seed"),
    "SetsASeedOfItsOwn": ("seeds", "another seed"),
    "DrawsInEvaluation": ("evaluation", "PyTorch's random numbers"),
    "LeavesEvaluationMode": ("evaluation", "training mode"),
    "WritesInEvaluation": ("evaluation", "body.0.bias"),
    "ForgetsInEvaluation": ("evaluation", "task 2"),
    "AveragesWhatItEvaluates": ("evaluation", "body.2.running_mean"),
    "LooksInTrainingMode": ("batch norms", "body.2.running_mean"),
    "ForgetsItsState": ("checkpoint", "after task 2"),
    "KeepsAnObject": ("checkpoint", "state_dict()['memory'][0]"),
    "CannotGoOn": ("checkpoint", "KeyError: 'older'"),
    "PredictsWithoutItsState": ("checkpoint", "predict"),
    "DividesByN": ("penalty", "divided by N"),
    "MultipliesByN": ("penalty", "penalty_grows_with_points = True"),
    "DividesByTheBatch": ("penalty", "mini-batch"),
    "HidesItsGradient": ("penalty", "a slope of 0"),
    "HasAnotherGradientWithoutItsValue": ("penalty", "loss_value = False"),
    "LeavesTheScaleOut": ("penalty", "kl_weight"),
    "SumsOverTheBatch": ("penalty", "the mean loss"),
    "RemembersTheWrongWeights": ("consolidates", "penalty_off_minimum"),
    "SaysItRemembersNothing": ("consolidates", "memoryless = True"),
    "AnchorsEveryHead": ("consolidates", "heads.1.* of task 2 and head.heads.2.*"),
    "FisherOfMiniBatches": ("accumulates", "in batches of 16"),
    "MeanFisherOfMiniBatches": ("accumulates", "in batches of 16"),
    "FisherOfGroups": ("accumulates", "three times"),
    "MeanFisher": ("accumulates", "memory_is_mean = True"),
}
"""The check that finds a method's fault, and what the fault must name."""


IN_BOTH = {"Good", "Laplace", "OnlyWithManyHeads", "ConsolidatesNoExperience"}
"""Methods that are tried with one head for all tasks too; a fault shows with several heads."""


WITH_NORMS = {"LooksInTrainingMode", "AveragesWhatItEvaluates"}
"""Methods whose faults show where a network has a batch norm."""


def streams_of(name):
    if name in WITH_NORMS:
        return [NORMS]
    return [SEVERAL_HEADS, ONE_HEAD] if name in IN_BOTH else [SEVERAL_HEADS]


@cache
def verdicts(name):
    recipe = recipe_for(f"broken_methods:{name}", {"posterior": "none"})
    return {verdict.name: verdict for verdict in iter_verdicts(recipe, streams_of(name))}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_its_own_check_alone_and_named(name):
    expected, cause = FAULTS[name]
    results = verdicts(name)
    checks = [check.name for check in CHECKS if {*check.streams} & {*streams_of(name)}]
    assert list(results) == [*checks, "serves"]
    faults = {v.name: v.message for v in results.values() if v.outcome == "fault"}
    assert list(faults) == [expected], faults
    assert cause in faults[expected]
    assert "\n" not in faults[expected]


def test_every_check_can_fail():
    assert {name for name, _ in FAULTS.values()} == {check.name for check in CHECKS}


def test_a_method_that_is_in_order_passes_every_check():
    assert {v.outcome for v in verdicts("Good").values()} == {"ok"}


def message_of(check, name, **settings):
    """The message of one check; its fault is raised."""
    recipe = recipe_for(f"broken_methods:{name}", {"posterior": "none", **settings})
    with isolated_rng():
        return check(Subject(recipe))


def test_a_laplace_approximation_that_is_right_passes_every_check():
    assert {v.outcome for v in verdicts("Laplace").values()} == {"ok"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision"),
    [("Laplace", 0.01), ("LaplaceWithDecay", 100.0), ("LaplaceWithDrawnLabels", 1.0)],
)
def test_a_sum_over_the_points_is_in_order_whatever_the_prior(name, precision):
    message = message_of(accumulates, name, **{"options.prior_precision": precision})
    assert "grows in proportion with the points" in message


@pytest.mark.slow
@pytest.mark.parametrize("precision", [0.01, 10.0])
def test_no_first_prior_hides_a_mean_or_a_batch(precision):
    for name in ("MeanFisher", "FisherOfMiniBatches"):
        with pytest.raises(Fault):
            message_of(accumulates, name, **{"options.prior_precision": precision})


@pytest.mark.slow
def test_a_mean_is_found_behind_random_numbers():
    with pytest.raises(Fault):
        message_of(accumulates, "MeanFisherWithDrawnLabels")


def test_a_method_may_say_that_its_memory_is_a_mean(monkeypatch):
    import broken_methods

    class Published(broken_methods.MeanFisher):
        memory_is_mean = True

    class InBatches(broken_methods.FisherOfMiniBatches):
        memory_is_mean = True

    for cls in (Published, InBatches):
        monkeypatch.setattr(broken_methods, cls.__name__, cls, raising=False)
    assert "as the class says" in message_of(accumulates, "Published")
    with pytest.raises(Fault):
        message_of(accumulates, "InBatches")


def test_what_consolidate_does_not_compute_from_the_points_need_not_grow_with_them():
    assert "computes nothing from the points" in verdicts("Good")["accumulates"].message


def test_a_check_that_waits_names_the_one_that_it_waits_for():
    assert "'runs'" in verdicts("Raises")["data"].message
    assert "'seeds'" in verdicts("DrawsUnseeded")["checkpoint"].message


def test_a_method_may_say_that_it_trains_old_heads(monkeypatch):
    import broken_methods

    class DecaysOldHeads(broken_methods.Good):
        @torch.no_grad()
        def _after_update(self, **kwargs):
            super()._after_update(**kwargs)
            if self.tasks != [0]:
                self.network.head.head(0).bias.add_(1e-3)

    monkeypatch.setattr(broken_methods, "DecaysOldHeads", DecaysOldHeads, raising=False)
    with pytest.raises(Fault):
        message_of(heads, "DecaysOldHeads")
    DecaysOldHeads.trains_old_heads = True
    assert "as the class says" in message_of(heads, "DecaysOldHeads")


def test_a_fault_does_not_keep_the_other_checks_from_going_on():
    outcomes = [v.outcome for v in verdicts("DrawsInEvaluation").values()]
    assert (outcomes.count("fault"), outcomes.count("skipped")) == (1, 0)
    assert verdicts("DrawsUnseeded")["learns"].outcome == "ok"


def test_a_strong_penalty_is_no_fault_and_neither_is_a_weak_one():
    for strength in (1e-3, 1e4):
        for check in (penalty, consolidates, accumulates):
            assert message_of(check, "Good", **{"options.strength": strength})


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
    with pytest.raises(Fault, match="penalty_off_minimum"):
        message_of(consolidates, "AlsoDecays")
    AlsoDecays.penalty_off_minimum = True
    assert "as the class says" in message_of(consolidates, "AlsoDecays")


def test_a_method_may_say_that_its_penalty_grows_with_the_points(monkeypatch):
    import broken_methods

    class Grows(broken_methods.MultipliesByN):
        penalty_grows_with_points = True

    monkeypatch.setattr(broken_methods, "Grows", Grows, raising=False)
    assert "as the class says" in message_of(penalty, "Grows")
