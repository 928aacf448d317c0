"""A patient is in one part only, and the parts look alike."""

import numpy as np
import pytest
from failing import data_fails, fails
from fundus_helpers import table
from hypothesis import given, settings
from hypothesis import strategies as st

from vcl_radial.data.fundus import (
    Photograph,
    Photographs,
    load_photographs,
    published_split,
    split_by_patient,
)


def photographs(grades_of_patients, parts=()):
    rows = tuple(
        Photograph(f"{p}_{k}", f"patient {p}", "unknown", grade, "here", parts[p] if parts else "")
        for p, grades in enumerate(grades_of_patients)
        for k, grade in enumerate(grades)
    )
    return Photographs("made up", rows, reader=None)


PATIENTS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=12, max_size=80)


@settings(max_examples=60, deadline=None)
@given(PATIENTS, st.floats(0.1, 0.4), st.floats(0.1, 0.4), st.integers(0, 5))
def test_parts_are_disjoint_in_patients_complete_and_stratified(grades, validation, test, seed):
    whole = photographs(grades)
    split = split_by_patient(whole, validation=validation, test=test, seed=seed)
    parts = [split.train, split.validation, split.test]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(whole)))
    patients = [set(whole.patients[part].tolist()) for part in parts]
    assert sum(map(len, patients)) == len(set.union(*patients)) == len(grades)
    worst = {f"patient {p}": max(own) for p, own in enumerate(grades)}
    for share, members in zip((1 - validation - test, validation, test), patients, strict=True):
        assert abs(len(members) - share * len(grades)) <= 1
        for grade in range(5):
            of_stratum = sum(w == grade for w in worst.values())
            assert abs(sum(worst[m] == grade for m in members) - share * of_stratum) <= 2


def test_the_cut_follows_from_the_seed_and_not_from_the_order_of_rows():
    rng = np.random.default_rng(0)
    whole = photographs(rng.integers(0, 5, (60, 2)).tolist())
    order = rng.permutation(len(whole))
    mixed = whole.select(order)

    def test_patients(of, seed):
        return set(of.patients[split_by_patient(of, seed=seed).test].tolist())

    assert test_patients(whole, 3) == test_patients(mixed, 3)
    assert test_patients(whole, 3) != test_patients(whole, 4)


def test_every_patient_is_tested_under_some_seed():
    whole = photographs([[0]] * 20 + [[3]] * 5)
    tested = {p for seed in range(40) for p in split_by_patient(whole, seed=seed).test.tolist()}
    assert tested == set(range(25))


def test_a_part_may_be_left_out():
    split = split_by_patient(table(), validation=0.0, test=0.5)
    assert len(split.validation) == 0
    assert len(split.train) == len(split.test) == 6


@pytest.mark.parametrize(("validation", "test"), [(0.5, 0.5), (-0.1, 0.2), (0.9, 0.2)])
def test_shares_that_leave_nothing_to_train_on_are_refused(validation, test):
    with fails("validation", test):
        split_by_patient(table(), validation=validation, test=test)


def test_too_few_patients_are_refused():
    with fails(table().name, "2 patients", "validation part of 10%"):
        split_by_patient(table(patients=2))


def test_a_published_split_is_kept_and_validation_cut_from_its_training_part():
    parts = ["train", "test"] * 20
    whole = photographs([[p % 5, 0] for p in range(40)], parts)
    split = published_split(whole, validation=0.25)
    assert {whole.rows[k].part for k in split.test} == {"test"}
    assert {whole.rows[k].part for k in (*split.train, *split.validation)} == {"train"}
    assert len(split.test) == 40
    assert len(split.validation) == 10
    assert not set(whole.patients[split.train]) & set(whole.patients[split.validation])


def test_a_patient_in_two_published_parts_is_refused():
    rows = [
        Photograph(f"{k}", "p", "unknown", 0, "", part) for k, part in enumerate(("train", "test"))
    ]
    with data_fails("x", "patient p"):
        published_split(Photographs("x", tuple(rows), reader=None))
    with data_fails(table().name):
        published_split(table())


def test_the_real_patients_are_kept_apart(retinopathy):
    whole = load_photographs("eyepacs-subset", retinopathy.parent)
    split = split_by_patient(whole, seed=1)
    train, valid, test = (
        set(whole.patients[p].tolist()) for p in (split.train, split.validation, split.test)
    )
    assert not train & valid
    assert not (train | valid) & test
    for part in (split.train, split.validation, split.test):
        assert whole.referable[part].mean() == pytest.approx(0.2005, abs=0.015)
