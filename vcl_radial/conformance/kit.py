"""The conformance kit: what a method has to keep to be comparable with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from vcl_radial.config.outside import is_named
from vcl_radial.conformance.accumulation import accumulates
from vcl_radial.conformance.family import LOOKS
from vcl_radial.conformance.memory import consolidates, frozen, heads
from vcl_radial.conformance.recipe import recipe_for
from vcl_radial.conformance.repeating import checkpoint, ending, evaluating, seeds
from vcl_radial.conformance.running import data, finite, learns, runs, shapes
from vcl_radial.conformance.scale import penalty
from vcl_radial.conformance.streams import (
    CLASSES,
    CONVOLUTIONS,
    NORMS,
    NUMBERS,
    SEVERAL_HEADS,
    STREAMS,
    Stream,
)
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.verdict import Fault, NotApplicable, Verdict, description
from vcl_radial.errors import UserError
from vcl_radial.methods.base import Method
from vcl_radial.posteriors import Posterior, family
from vcl_radial.system.quiet import quiet
from vcl_radial.system.seeds import isolated_rng
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.recipe import check_recipe


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: of it.
        look: at a method on a stream.
        needs: the checks without which it would say nothing.
        streams: it looks at.
    """

    name: str
    look: Callable[[Subject], str]
    needs: tuple[str, ...] = ()
    streams: tuple[Stream, ...] = (SEVERAL_HEADS, NUMBERS, CONVOLUTIONS)


_PLAIN = SEVERAL_HEADS, NUMBERS
"""Where the layers make no difference."""

CHECKS = (
    Check("runs", runs, streams=STREAMS),
    Check("finite numbers", finite, streams=STREAMS),
    Check("shapes", shapes, ("finite numbers",)),
    Check("data", data, (), _PLAIN),
    Check("learns", learns, ("finite numbers",)),
    Check("heads stay apart", heads, ("finite numbers", "shapes"), (SEVERAL_HEADS,)),
    Check("seeds", seeds, ("finite numbers", "shapes"), _PLAIN),
    Check("frozen weights", frozen, ("finite numbers", "shapes", "seeds"), (SEVERAL_HEADS,)),
    Check(
        "evaluation",
        evaluating,
        ("finite numbers", "shapes", "data", "seeds"),
        (*_PLAIN, NORMS),
    ),
    Check("batch norms", ending, ("finite numbers",), (NORMS,)),
    Check("checkpoint", checkpoint, ("finite numbers", "shapes", "data", "seeds")),
    Check("consolidates", consolidates, ("finite numbers", "shapes", "seeds")),
    Check("penalty", penalty, ("finite numbers", "shapes")),
    Check("accumulates", accumulates, ("finite numbers", "shapes", "seeds", "penalty")),
)


_IN_METHODS = {
    "consolidate(experience)": "end_task(task)",
    "consolidate()": "end_task()",
    "criterion()": "loss()",
    "self.tasks": "self.heads",
}
"""What strategies name otherwise than methods."""


class Verdicts(list[Verdict]):
    """The verdicts of all checks; printed, a line each."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    @property
    def faults(self) -> list[Verdict]:
        """Those that say what is wrong."""
        return [verdict for verdict in self if verdict.outcome == "fault"]


def check(
    method: str | type[Method] | type[Posterior],
    settings: Mapping[str, Any] | None = None,
    *,
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
) -> Verdicts:
    """Check a method or a posterior on small data, in under a minute.

    Does it run, learn, consolidate, leave the heads of other tasks unchanged, resume from a
    checkpoint to the same bits, and scale its penalty as the other methods do? Is a posterior a
    distribution, and is its KL right? The last verdict says which data the method serves.

    Args:
        method: a class, its `"package.module:Class"`, the path of a recipe's .toml file, or a name
            of `list_methods`.
        settings: keys of the recipe, `"options.key"` for the method's own.
        on_verdict: called with each verdict as it falls.

    Raises:
        UserError: there is no such method, it does not take the settings, or it serves none of the
            data.
    """
    recipe = recipe_for(method, settings)
    with quiet():
        check_recipe(recipe)
    all_verdicts = Verdicts()
    with isolated_rng():
        torch.set_num_threads(1)
        for verdict in iter_verdicts(recipe):
            all_verdicts.append(verdict)
            on_verdict(verdict)
    return all_verdicts


def iter_verdicts(recipe: Recipe, streams: Sequence[Stream] = STREAMS) -> Iterator[Verdict]:
    """Run all checks on a method, and yield each verdict as it falls; the last says what it serves.

    The method is trained on small streams of three tasks, which need no download, some twenty times
    each for a few steps and once for `recipe.epochs`. A check that finds a fault, or whose trial
    raises anything, does not keep the others from going on. A posterior from outside the suite is
    looked at first, by `check_family`.

    Args:
        recipe: of the method; see `vcl_radial.conformance.recipe_for`.
        streams: to try it on.

    Raises:
        UserError: the strategy cannot be found or imported, or serves none of the streams.
    """
    subjects: dict[Stream, Subject] = {}
    refused: dict[Stream, UserError] = {}
    with _quiet():
        for stream in streams:
            try:
                subjects[stream] = Subject(recipe, stream)
            except UserError as error:
                refused[stream] = error
            except SystemExit as error:
                refused[stream] = UserError(f"{recipe.strategy} ended the process: exit({error})")
        if recipe.network is not None and not subjects.keys() & {*CLASSES}:
            _see_network_fits(recipe, refused)
    if not subjects:
        raise refused[streams[0]]
    if is_named(recipe.posterior):
        yield from check_family(family(recipe.posterior))
    failed: dict[Stream, list[str]] = {stream: [] for stream in subjects}
    for each in CHECKS:
        of_streams: dict[Stream, Verdict] = {}
        for stream in each.streams:
            if stream in subjects:
                with _quiet():
                    of_streams[stream] = _verdict(each, subjects[stream], failed[stream])
                if of_streams[stream].outcome == "fault":
                    failed[stream].append(each.name)
        if of_streams:
            yield _joined(of_streams)
    yield _serves(failed, refused)


def _see_network_fits(recipe: Recipe, refused: Mapping[Stream, UserError]) -> None:
    """Raise what refused a stream of classes because of the user's own network, not the suite's."""
    of_the_suite = recipe.model_copy(update={"network": None})
    for stream, error in refused.items():
        try:
            Subject(of_the_suite, stream)
        except UserError:
            continue
        raise error


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
    with isolated_rng(), quiet():
        yield


def _verdict(check: Check, subject: Subject, failed: Sequence[str]) -> Verdict:
    if missing := next((name for name in check.needs if name in failed), None):
        return Verdict(check.name, "skipped", f"not looked at before {missing!r} is mended")
    verdict = _outcome(check.name, partial(check.look, subject), subject.method)
    if issubclass(subject.method, Method):
        for ours, theirs in _IN_METHODS.items():
            verdict = replace(verdict, words=verdict.words.replace(ours, theirs))
    return verdict


def _joined(verdicts: Mapping[Stream, Verdict]) -> Verdict:
    """The first fault, or what is said of the first stream that says something."""
    faulty = {stream: v for stream, v in verdicts.items() if v.outcome == "fault"}
    if not faulty:
        return min(verdicts.values(), key=lambda verdict: verdict.outcome == "skipped")
    (first, verdict), *others = faulty.items()
    words = verdict.words if first is SEVERAL_HEADS else f"{first.where}, {verdict.words}"
    also = " and ".join(stream.where for stream, _ in others)
    return replace(verdict, words=f"{words} ({also} too)" if also else words)


def _serves(failed: Mapping[Stream, Sequence[str]], refused: Mapping[Stream, UserError]) -> Verdict:
    served = [stream.name for stream, names in failed.items() if not names]
    words = [", ".join(served) or "nothing before the faults are mended"]
    words += [f"not {stream.name}: {error}" for stream, error in refused.items()]
    return Verdict("serves", "ok", "; ".join(words))


def _outcome(name: str, look: Callable[[], str], own: type[Any]) -> Verdict:
    try:
        return Verdict(name, "ok", look())
    except NotApplicable as reason:
        return Verdict(name, "skipped", str(reason))
    except Fault as fault:
        return Verdict(name, "fault", str(fault))
    except (Exception, SystemExit) as error:  # a user's class may fail in any way
        return Verdict(name, "fault", description(error, own))
