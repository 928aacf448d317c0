"""The conformance kit: what a method has to keep to be comparable with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from vcl_radial.conformance.accumulation import accumulates
from vcl_radial.conformance.family import LOOKS
from vcl_radial.conformance.memory import consolidates, heads
from vcl_radial.conformance.repeating import checkpoint, evaluating, seeds
from vcl_radial.conformance.running import data, finite, learns, runs, shapes
from vcl_radial.conformance.scale import penalty
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.trial import own_random_states
from vcl_radial.conformance.verdict import Fault, NotApplicable, Verdict, told
from vcl_radial.outside import is_named
from vcl_radial.posteriors import Posterior, family
from vcl_radial.quiet import quiet
from vcl_radial.tracks.continual.settings import Recipe


@dataclass(frozen=True)
class Check:
    """One check: its name, how it looks, and the checks without which it would say nothing."""

    name: str
    look: Callable[[Subject], str]
    needs: tuple[str, ...] = ()


CHECKS = (
    Check("runs", runs),
    Check("finite numbers", finite),
    Check("shapes", shapes, ("finite numbers",)),
    Check("data", data),
    Check("learns", learns, ("finite numbers",)),
    Check("heads stay apart", heads, ("finite numbers", "shapes")),
    Check("seeds", seeds, ("finite numbers", "shapes")),
    Check("evaluation", evaluating, ("finite numbers", "shapes", "data", "seeds")),
    Check("checkpoint", checkpoint, ("finite numbers", "shapes", "data", "seeds")),
    Check("consolidates", consolidates, ("finite numbers", "shapes", "seeds")),
    Check("penalty", penalty, ("finite numbers", "shapes")),
    Check("accumulates", accumulates, ("finite numbers", "shapes", "seeds", "penalty")),
)


def check(recipe: Recipe) -> Iterator[Verdict]:
    """Run all checks on a method, and yield each verdict as it falls.

    The method is trained on the first tasks of split-digits, which needs no download, some twenty
    times for a few steps and once for `recipe.epochs`. A check that finds a fault, or whose trial
    raises anything, does not keep the others from going on. A posterior from outside the suite is
    looked at first, by `check_family`.

    Args:
        recipe: of the method; see `vcl_radial.conformance.recipe_for`.

    Raises:
        UserError: the strategy cannot be found or imported.
    """
    with _quiet():
        subject = Subject(recipe)
    if is_named(recipe.posterior):
        yield from check_family(family(recipe.posterior))
    failed: dict[str, str] = {}
    for each in CHECKS:
        with _quiet():
            verdict = _verdict(each, subject, failed)
        if verdict.outcome == "fault":
            failed[each.name] = verdict.words
        yield verdict


def check_family(posterior: type[Posterior]) -> Iterator[Verdict]:
    """Whether a variational family is one: its noise, density, entropy, KL and gradients.

    Each check is on groups of one, two and ten weights; what has to be estimated from draws may be
    off by five standard errors.

    Args:
        posterior: the class.
    """
    for name, look in LOOKS.items():
        with _quiet():
            yield _outcome(name, partial(look, posterior), posterior)


@contextmanager
def _quiet() -> Iterator[None]:
    with own_random_states(), quiet():
        yield


def _verdict(check: Check, subject: Subject, failed: dict[str, str]) -> Verdict:
    if missing := next((name for name in check.needs if name in failed), None):
        return Verdict(check.name, "skipped", f"not looked at before {missing!r} is mended")
    return _outcome(check.name, partial(check.look, subject), subject.method)


def _outcome(name: str, look: Callable[[], str], own: type[Any]) -> Verdict:
    try:
        return Verdict(name, "ok", look())
    except NotApplicable as reason:
        return Verdict(name, "skipped", str(reason))
    except Fault as fault:
        return Verdict(name, "fault", str(fault))
    except Exception as error:  # a user's class may fail in any way
        return Verdict(name, "fault", told(error, own))
