from itertools import count

import pytest

from benchmarks.speed.timing import interleaved, ratios, rounds, spread, times_to_fill


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


def test_the_order_is_reversed_every_other_round():
    assert "".join(rounds("abc", 3)) == "abccbaabc"


def test_variants_are_timed_in_that_order_after_a_warm_up():
    machine = FakeMachine()
    variants = {name: machine.work(name, forever(1.0)) for name in "abc"}
    interleaved(variants, 3, machine.clock)
    assert "".join(machine.done) == "abc" + "abccbaabc"


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


def test_a_unit_is_filled_with_as_many_calls_as_it_takes():
    machine = FakeMachine()
    assert times_to_fill(1.0, machine.work("a", forever(0.3)), machine.clock) == 4
    assert times_to_fill(1.0, machine.work("a", forever(5.0)), machine.clock) == 1
    assert times_to_fill(1.0, machine.work("a", forever(0.0)), machine.clock) == 1
