"""What a method declares about itself: class attributes that tracks, recipes and checks read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from vcl_radial.nn.lane_step import LaneStep


class MethodTraits:
    """The traits of a method and their defaults; a class overrides those that differ."""

    likelihoods: ClassVar[frozenset[str]] = frozenset(
        {"categorical", "one-hot", "bernoulli", "gaussian"}
    )
    """The names of the likelihoods that the method supports."""
    posteriors: ClassVar[frozenset[str]] = frozenset()
    """The posteriors that its network may have: names of families, "any" for every family, "none"
    for point estimates; empty for all of these. A user's own family counts as any of them but
    "none"."""
    needs_whole_stream: ClassVar[bool] = False
    """Whether the method trains once on all tasks together."""
    memoryless: ClassVar[bool] = False
    """Whether the method carries nothing from task to task, by design."""
    trains_old_heads: ClassVar[bool] = False
    """Whether the heads of earlier tasks keep changing, by design."""
    penalty_off_minimum: ClassVar[bool] = False
    """Whether the penalty of the next task is not minimal where the last one ended, by design: for
    example because the prior is broadened, or because of a term beside the distance to the past."""
    penalty_grows_with_points: ClassVar[bool] = False
    """Whether the penalty grows with the task's number of training points, by design: the loss
    divides by that number, and so holds a mean over the points."""
    memory_is_mean: ClassVar[bool] = False
    """Whether what a task leaves is a mean over its points, by design, as in MAS as published: a
    task then counts the same in the past however many points it had."""
    closed_form: ClassVar[bool] = False
    """Whether `end_task` learns a task, with neither steps nor random numbers, by design."""
    asks_heads: ClassVar[bool] = False
    """Whether the method asks each head of its network separately."""
    lane_step: ClassVar[type[LaneStep] | None] = None
    """A training step of many runs of the method at once, with Adam. Only the class that defines it
    has it: a subclass may train otherwise, and a method without one trains its runs one by one."""
    lane_options: ClassVar[frozenset[str]] = frozenset()
    """The options that such runs may have, which `begin_lane` takes."""
    recipe_keys: ClassVar[frozenset[str]] = frozenset()
    """The recipe keys that the method takes beside the settings of `Method`, where it keeps its own
    posterior over a network of point estimates: those of "prior_scale" and "initial_noise" that its
    constructor has, and "eval_samples" where its predictions draw."""
    fixed_options: ClassVar[frozenset[str]] = frozenset()
    """Options of the base class that the constructor sets itself."""
