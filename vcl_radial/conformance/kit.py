"""The conformance kit: checks that make a method comparable with the others."""

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
from vcl_radial.conformance.running import data, learns, runs
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


@dataclass(frozen=True)
class Check:
    """A check of a method on some streams.

    Attributes:
        name: name of the check.
        look: checks a method on a stream.
        needs: names of the checks that must pass before this check is meaningful, besides "runs".
        streams: streams on which the check runs.
    """

    name: str
    look: Callable[[Subject], str]
    needs: tuple[str, ...] = ()
    streams: tuple[Stream, ...] = (SEVERAL_HEADS, NUMBERS, CONVOLUTIONS)


_PLAIN = SEVERAL_HEADS, NUMBERS
"""Streams of the checks that do not depend on the kind of layers."""

CHECKS = (
    Check("runs", runs, streams=STREAMS),
    Check("data", data, streams=_PLAIN),
    Check("learns", learns),
    Check("heads stay apart", heads, streams=(SEVERAL_HEADS,)),
    Check("seeds", seeds, streams=_PLAIN),
    Check("frozen weights", frozen, ("seeds",), (SEVERAL_HEADS,)),
    Check("evaluation", evaluating, ("data", "seeds"), (*_PLAIN, NORMS)),
    Check("batch norms", ending, streams=(NORMS,)),
    Check("checkpoint", checkpoint, ("data", "seeds")),
    Check("penalty", penalty),
    Check("consolidates", consolidates, ("seeds", "penalty")),
    Check("accumulates", accumulates, ("seeds", "penalty")),
)


_IN_METHODS = {
    "consolidate(experience)": "end_task(task)",
    "consolidate()": "end_task()",
    "criterion()": "loss()",
    "self.tasks": "self.heads",
}
"""Names of a strategy's hooks, and of the method's hooks that replace them in messages."""


class Verdicts(list[Verdict]):
    """The verdicts of all checks, printed with one line per verdict."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    @property
    def faults(self) -> list[Verdict]:
        """The verdicts with a fault."""
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
    distribution, and is its KL right? The last verdict says which data the method supports.

    Args:
        method: a class, its `"package.module:Class"`, the path of a recipe's .toml file, or a name
            of `list_methods`.
        settings: keys of the recipe; `"options.key"` for options of the method.
        on_verdict: called with each verdict when it is ready.

    Raises:
        UserError: there is no such method, or it does not support the settings or any of the data.
    """
    recipe = recipe_for(method, settings)
    with quiet():
        recipe.check_method()
    all_verdicts = Verdicts()
    with isolated_rng():
        torch.set_num_threads(1)
        for verdict in iter_verdicts(recipe):
            all_verdicts.append(verdict)
            on_verdict(verdict)
    return all_verdicts


def iter_verdicts(recipe: Recipe, streams: Sequence[Stream] = STREAMS) -> Iterator[Verdict]:
    """Run all checks on a method, and yield each verdict; the last lists the supported data.

    The method is trained on small streams of three tasks, which need no download, about twenty
    times for a few steps and once for `recipe.epochs` on each stream. The checks continue after a
    fault or an exception in a trial. `check_family` first checks a posterior from outside the
    suite.

    Args:
        recipe: recipe of the method; see `vcl_radial.conformance.recipe_for`.
        streams: streams on which the method is trained.

    Raises:
        UserError: the strategy cannot be found or imported, or does not support any of the streams.
    """
    subjects: dict[Stream, Subject] = {}
    refused: dict[Stream, UserError] = {}
    with _quiet():
        for stream in streams:
            try:
                subjects[stream] = Subject(recipe, stream)
            except UserError as error:
                refused[stream] = error
    own_network_unused = recipe.network is not None and not subjects.keys() & {*CLASSES}
    if refused and (own_network_unused or not subjects):
        raise next(iter(refused.values()))
    if is_named(recipe.posterior):
        yield from check_family(family(recipe.posterior))
    failed: dict[Stream, list[str]] = {stream: [] for stream in subjects}
    for item in CHECKS:
        verdicts: dict[Stream, Verdict] = {}
        for stream in item.streams:
            if stream in subjects:
                with _quiet():
                    verdicts[stream] = _verdict(item, subjects[stream], failed[stream])
                if verdicts[stream].outcome == "fault":
                    failed[stream].append(item.name)
        if verdicts:
            yield _joined(verdicts)
    yield _serves(failed, refused)


def check_family(posterior: type[Posterior]) -> Iterator[Verdict]:
    """Check a variational family: its noise, density, entropy, KL and gradients.

    The checks use groups of one, two and ten weights; estimates from draws may be off by five
    standard errors.

    Args:
        posterior: class of the family.
    """
    for name, look in LOOKS.items():
        with _quiet():
            yield _outcome(name, partial(look, posterior), posterior)


@contextmanager
def _quiet() -> Iterator[None]:
    with isolated_rng(), quiet():
        yield


def _verdict(check: Check, subject: Subject, failed: Sequence[str]) -> Verdict:
    if missing := next((name for name in ("runs", *check.needs) if name in failed), None):
        return Verdict(check.name, "skipped", f"skipped until {missing!r} is fixed")
    verdict = _outcome(check.name, partial(check.look, subject), subject.method)
    if issubclass(subject.method, Method):
        for in_strategy, in_method in _IN_METHODS.items():
            verdict = replace(verdict, message=verdict.message.replace(in_strategy, in_method))
    return verdict


def _joined(verdicts: Mapping[Stream, Verdict]) -> Verdict:
    """The first fault, or the verdict on the first stream that is not skipped."""
    faulty = {stream: v for stream, v in verdicts.items() if v.outcome == "fault"}
    if not faulty:
        return min(verdicts.values(), key=lambda verdict: verdict.outcome == "skipped")
    (stream, verdict), *rest = faulty.items()
    message = verdict.message
    if stream is not SEVERAL_HEADS:
        message = f"{stream.phrase}, {message}"
    also = " and ".join(stream.phrase for stream, _ in rest)
    return replace(verdict, message=f"{message} ({also} too)" if also else message)


def _serves(failed: Mapping[Stream, Sequence[str]], refused: Mapping[Stream, UserError]) -> Verdict:
    supported = [stream.name for stream, names in failed.items() if not names]
    parts = [", ".join(supported) or "nothing before the faults are fixed"]
    parts += [f"not {stream.name}: {error}" for stream, error in refused.items()]
    return Verdict("serves", "ok", "; ".join(parts))


def _outcome(name: str, look: Callable[[], str], subject: type[Any]) -> Verdict:
    try:
        return Verdict(name, "ok", look())
    except NotApplicable as reason:
        return Verdict(name, "skipped", str(reason))
    except Fault as fault:
        return Verdict(name, "fault", str(fault))
    except (Exception, SystemExit) as error:  # a user's class may fail in any way
        return Verdict(name, "fault", description(error, subject))
