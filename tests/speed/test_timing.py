from itertools import count

import pytest

from benchmarks.speed.timing import (
    interleaved,
    measure_in_turn,
    ratios,
    spread,
    timed,
    timed_calls,
)


class FakeMachine:
    """A clock, and work that lasts as long as it is told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[str] = []

    def clock(self) -> float:
        return self.now

    def work(self, name, seconds):
        seconds = iter(seconds)

        def work() -> None:
            self.done.append(name)
            self.now += next(seconds)

        return work


def forever(seconds):
    return (seconds for _ in count())


def test_variants_take_turns_after_a_warm_up_in_reversed_order_every_other_round():
    machine = FakeMachine()
    variants = {name: machine.work(name, forever(1.0)) for name in "abc"}
    interleaved(variants, 3, machine.clock)
    assert "".join(machine.done) == "cba" + "abccbaabc"


def test_known_durations_come_back_round_by_round():
    machine = FakeMachine()
    variants = {"a": machine.work("a", [9, 1, 2, 3]), "b": machine.work("b", [9, 10, 30, 20])}
    seconds = interleaved(variants, 3, machine.clock)
    assert seconds == {"a": [1, 2, 3], "b": [10, 30, 20]}


def test_the_warm_up_does_not_count():
    machine = FakeMachine()
    seconds = interleaved({"a": machine.work("a", [100, 1, 1])}, 2, machine.clock)
    assert max(seconds["a"]) == 1


def test_a_variant_that_takes_twice_as_long_has_ratio_two_whatever_the_machine_does():
    machine = FakeMachine()
    slowness = [1, 1, 7, 3]  # of the machine, round by round
    variants = {
        "floor": machine.work("floor", [0.5 * s for s in slowness]),
        "ours": machine.work("ours", [1.0 * s for s in slowness]),
    }
    found = ratios(interleaved(variants, 3, machine.clock), "floor")
    assert found.keys() == {"ours"}
    assert spread(found["ours"]) == (2.0, 2.0, 2.0, 3)


def test_ratios_are_taken_within_a_round_and_not_between_medians():
    found = ratios({"a": [1, 2, 10], "b": [2, 1, 4]}, "b")
    assert spread(found["a"]).median == 2
    assert found["a"] == [0.5, 2, 2.5]  # the ratio of the medians would be 1


def test_a_reference_of_another_number_of_rounds_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        ratios({"a": [1, 2], "b": [1]}, "b")


def test_the_spread_is_median_lowest_highest_and_how_many():
    assert spread([5, 1, 4, 2]) == (3.0, 1, 5, 4)


def test_what_a_unit_measures_is_kept_by_metric_and_variant():
    values = iter(range(8))
    variants = {name: lambda: {"first": next(values), "second": 9.0} for name in "ab"}
    assert measure_in_turn(variants, 2, warm_up=1) == {
        "first": {"a": [2, 5], "b": [3, 4]},
        "second": {"a": [9, 9], "b": [9, 9]},
    }


def test_a_unit_of_many_steps_gives_the_seconds_of_one():
    machine = FakeMachine()
    measure = timed(machine.work("a", [6.0]), machine.clock, "seconds per step", units=4)
    assert measure() == {"seconds per step": 1.5}


@pytest.mark.parametrize("seconds", [0.3, 5.0])
def test_one_call_is_measured_by_as_many_as_fill_a_unit(seconds):
    machine = FakeMachine()
    work = machine.work("a", forever(seconds))
    measured = timed_calls(work, machine.clock, "seconds", least_seconds=1.0)()
    assert measured == {"seconds": pytest.approx(seconds)}
    assert machine.now >= 1.0
