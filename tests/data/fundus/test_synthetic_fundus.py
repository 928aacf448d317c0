"""Drawn eyes: who is on them, what they have, and that the table tells the truth about it."""

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from failing import fails
from scipy import ndimage, stats
from sklearn.metrics import roc_auc_score

from vcl_radial.data.fundus import SyntheticSettings, load_photographs, synthetic_photographs
from vcl_radial.data.fundus.local_normalisation import locally_normalised
from vcl_radial.data.fundus.synthetic import (
    ARTEFACTS,
    CAMERAS,
    GRADE_SHARES,
    Subject,
    render,
    subjects,
)

MANY = subjects(SyntheticSettings(patients=4000))
EYE = Subject(0, "left", 2, 0.5, "camera-a", "", 0.4)
SIZE = 128


@lru_cache(maxsize=128)
def pixels(subject, size=SIZE, seed=0):
    array = np.asarray(render(subject, seed, size), np.float64)
    array.setflags(write=False)
    return array


def test_a_seed_gives_the_same_pictures_and_another_seed_others():
    assert np.array_equal(render(EYE, 0, SIZE), render(EYE, 0, SIZE))
    assert not np.array_equal(pixels(EYE), pixels(EYE, seed=1))
    assert not np.array_equal(pixels(EYE), pixels(replace(EYE, number=1)))
    assert subjects(SyntheticSettings(patients=3)) == subjects(SyntheticSettings(patients=3))
    other = SyntheticSettings(patients=3, seed=1)
    assert subjects(other) != subjects(SyntheticSettings(patients=3))


def test_the_first_patients_are_the_same_however_many_follow():
    assert MANY[:20] == subjects(SyntheticSettings(patients=10))


def test_grades_come_as_often_as_in_eyepacs():
    counts = np.bincount([s.grade for s in MANY], minlength=5)
    # Eyes of one patient are alike: the variance of a count is up to twice the binomial one.
    for count, share in zip(counts, GRADE_SHARES, strict=True):
        assert abs(count / len(MANY) - share) < 4 * np.sqrt(2 * share * (1 - share) / len(MANY))
    assert sum(GRADE_SHARES) == pytest.approx(1)


def test_a_patients_eyes_are_of_correlated_grade():
    left, right = (np.array([s.grade for s in MANY[k::2]]) for k in (0, 1))
    of_one, of_two = (np.corrcoef(left, np.roll(right, k))[0, 1] for k in (0, 1))
    assert 0.6 < of_one < 0.95
    assert abs(of_two) < 0.06
    assert (left != right).mean() > 0.05


def test_severity_within_a_grade_is_uniform():
    # One eye of each patient: those of two are not independent.
    for grade in (0, 2):
        severities = [s.severity for s in MANY[::2] if s.grade == grade]
        assert stats.kstest(severities, "uniform").pvalue > 1e-3
    assert all(0 <= s.severity <= 1 for s in MANY)


def test_artefacts_come_at_the_share_asked_for_and_whatever_the_grade():
    flagged = np.array([bool(s.artefact) for s in MANY])
    assert flagged.mean() == pytest.approx(0.15, abs=4 * np.sqrt(0.15 * 0.85 / len(MANY)))
    counts = [sum(s.artefact == kind for s in MANY) for kind in ARTEFACTS]
    assert stats.chisquare(counts).pvalue > 1e-3
    referable = np.array([s.grade >= 2 for s in MANY])
    together = [[(flagged == a).astype(int) @ (referable == r) for a in (0, 1)] for r in (0, 1)]
    assert stats.chi2_contingency(together).pvalue > 1e-3


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_another_share_of_artefacts_changes_nothing_else(share):
    changed = subjects(SyntheticSettings(patients=50, artefacts=share))
    assert [replace(s, artefact="") for s in MANY[:100]] == [
        replace(s, artefact="") for s in changed
    ]
    assert all(bool(s.artefact) == bool(share) for s in changed)
    if share:
        pairs = zip(MANY, changed, strict=False)
        assert all(before.artefact == now.artefact for before, now in pairs if before.artefact)


def test_a_patient_is_seen_by_one_camera():
    pairs = zip(MANY[::2], MANY[1::2], strict=True)
    assert all(left.camera == right.camera for left, right in pairs)
    share = np.mean([s.camera == "camera-b" for s in MANY])
    assert share == pytest.approx(0.4, abs=0.035)


def test_the_table_describes_the_drawn_pictures():
    photographs = synthetic_photographs(SyntheticSettings(patients=10))
    assert photographs.synthetic
    assert "SYNTHETIC" in photographs.notice
    assert all(row.name.startswith("synthetic-") for row in photographs.rows)
    for row, subject in zip(photographs.rows, MANY[:20], strict=True):
        assert (row.grade, row.eye, row.site, row.artefact) == (
            subject.grade,
            subject.eye,
            subject.camera,
            subject.artefact,
        )
    assert len(set(photographs.patients.tolist())) == 10
    by_name = load_photographs("synthetic", synthetic=SyntheticSettings(patients=10))
    assert by_name.rows == photographs.rows
    row = photographs.rows[3]
    assert np.array_equal(photographs.reader.read(row, 64), render(MANY[3], 0, 64))


@pytest.mark.parametrize("artefact", ARTEFACTS)
def test_an_artefact_shows_on_an_eye_that_is_else_the_same(artefact):
    sound, marred = pixels(EYE), pixels(replace(EYE, artefact=artefact))
    difference = np.abs(sound - marred).max(-1)
    if artefact == "dust":  # specks here and there, and all between them as before
        assert difference.max() > 25
        assert (difference == 0).mean() > 0.5
    else:
        assert difference.mean() > 3
    if artefact == "dark":
        assert marred.mean() < 0.6 * sound.mean()
    if artefact == "blur":
        assert sharpness(marred) < 0.5 * sharpness(sound)


def sharpness(picture):
    inside = picture[SIZE // 4 : 3 * SIZE // 4, SIZE // 4 : 3 * SIZE // 4].mean(-1)
    return ndimage.laplace(ndimage.gaussian_filter(inside, 1.0)).std()


def test_the_cameras_differ_in_field_and_colour():
    a, b = (pixels(replace(EYE, camera=camera)) for camera in CAMERAS)
    lit = [(p.max(-1) > 20) for p in (a, b)]
    assert lit[0].any(1).sum() > 1.2 * lit[1].any(1).sum()
    hue = [p[..., 2].sum() / p[..., 0].sum() for p in (a, b)]
    assert hue[1] < 0.85 * hue[0]


def test_the_disc_lies_towards_the_nose():
    """To the left of the macula in a left eye, to the right in a right one."""
    for eye, sign in (("left", -1), ("right", 1)):
        for number in range(6):
            picture = pixels(replace(EYE, number=number, eye=eye, grade=0))
            smooth = ndimage.gaussian_filter(picture[..., 1], SIZE / 40)
            across = np.unravel_index(smooth.argmax(), smooth.shape)[1]
            assert np.sign(across - SIZE / 2) == sign


def changes(grade, eyes=10):
    """What a grade darkens and brightens in green, in the sum over eyes that are else healthy."""
    darker = brighter = 0.0
    for number in range(eyes):
        eye = replace(EYE, number=number)
        healthy, ill = (pixels(replace(eye, grade=g))[..., 1] for g in (0, grade))
        darker += np.maximum(healthy - ill, 0).sum()
        brighter += np.maximum(ill - healthy, 0).sum()
    return darker, brighter


def test_lesions_grow_with_the_grade_on_an_eye_that_is_else_the_same():
    darker, brighter = zip(*(changes(grade) for grade in range(5)), strict=True)
    assert darker[0] == brighter[0] == 0
    assert all(less < more for less, more in pairwise(darker))
    # Microaneurysms are all that grade 1 has; what is pale comes with grade 2.
    assert brighter[1] < 0.05 * darker[1]
    assert all(value > 10 * brighter[1] for value in brighter[2:])


def spots(picture):
    """How much darker in green than all around it are the places that are small and round."""
    green = picture[..., 1]
    closed = [ndimage.grey_closing(green, footprint=line(angle)) for angle in range(0, 180, 45)]
    inside = np.hypot(*np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]) < 0.75
    return np.minimum.reduce(closed)[inside].sum() - green[inside].sum()


def line(angle, length=11):
    """A footprint along a line: closing along it fills what is shorter."""
    t = np.linspace(-1, 1, 4 * length) * (length // 2)
    rows = np.round(length // 2 + t * np.sin(np.radians(angle))).astype(int)
    columns = np.round(length // 2 + t * np.cos(np.radians(angle))).astype(int)
    footprint = np.zeros((length, length), bool)
    footprint[rows, columns] = True
    return footprint


@pytest.mark.parametrize("normalised", [False, True])
def test_disease_can_be_seen_but_not_from_the_colours_alone(normalised):
    sound = [s for s in MANY if not s.artefact and s.camera == "camera-a"]
    eyes = [s for s in sound if s.grade < 2][:40] + [s for s in sound if s.grade >= 2][:40]
    pictures = [pixels(s).astype(np.uint8) for s in eyes]
    if normalised:
        pictures = [locally_normalised(p) for p in pictures]
    pictures = [p.astype(float) for p in pictures]
    referable = [s.grade >= 2 for s in eyes]
    assert roc_auc_score(referable, [spots(p) for p in pictures]) > 0.7
    for channel in range(3):
        auc = roc_auc_score(referable, [p[..., channel].mean() for p in pictures])
        assert abs(auc - 0.5) < 0.3


@pytest.mark.parametrize("size", [32, 200])
def test_pictures_are_as_large_as_asked_and_black_around_the_field(size):
    picture = pixels(EYE, size)
    edge = max(size, 128)
    assert picture.shape == (edge, edge, 3)
    axis = ((np.arange(edge) + 0.5) / edge * 2 - 1) * 1.04
    radius = np.hypot(axis, axis[:, None])
    notch = np.zeros_like(radius, bool)
    notch[: edge // 4, -edge // 4 :] = True
    assert picture[(radius > 1.02) & ~notch].max() == 0
    assert (picture[radius < 0.97].max(-1) > 0).mean() > 0.999


def test_a_larger_picture_shows_the_same_eye():
    small, large = (render(EYE, 0, size) for size in (128, 256))
    assert np.corrcoef(np.ravel(small), np.ravel(large.reduce(2)))[0, 1] > 0.97


@pytest.mark.parametrize(
    ("key", "value"),
    [("patients", 0), ("seed", -1), ("artefacts", 1.5), ("second_camera", -0.1)],
)
def test_what_cannot_be_generated_is_refused(key, value):
    with fails(key, value):
        SyntheticSettings(**{key: value})
