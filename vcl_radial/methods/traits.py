"""The class attributes that a method declares, for tracks, recipes and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from vcl_radial.nn.lane_step import LaneStep


class MethodTraits:
    """The traits of a method and their defaults; a class overrides the traits that differ."""

    likelihoods: ClassVar[frozenset[str]] = frozenset(
        {"categorical", "one-hot", "bernoulli", "gaussian"}
    )
    """The names of the likelihoods that the method supports."""
    posteriors: ClassVar[frozenset[str]] = frozenset()
    """The posteriors that its network may have: names of families, "any" for every family, "none"
    for point estimates; empty for all of these. A user's family counts as any of them except
    "none"."""
    carries: ClassVar[str] = "the weights alone"
    """What it keeps from task to task, for `vcl-radial list METHOD` and the gallery of methods."""
    needs_whole_stream: ClassVar[bool] = False
    """Whether the method trains once on all tasks together."""
    memoryless: ClassVar[bool] = False
    """Whether the method carries nothing from task to task, by design."""
    trains_old_heads: ClassVar[bool] = False
    """Whether the heads of earlier tasks keep changing, by design."""
    penalty_off_minimum: ClassVar[bool] = False
    """Whether the penalty of the next task is not minimal at the end of the last task, by design:
    for example if the prior is broadened, or if a term is added to the distance from the past."""
    penalty_grows_with_points: ClassVar[bool] = False
    """Whether the penalty grows with the task's number of training points, by design: the loss
    divides by this number, and so contains a mean over the points."""
    memory_is_mean: ClassVar[bool] = False
    """Whether the memory of a task is a mean over its points, by design, as in the published MAS:
    all tasks then have the same weight, however many points they had."""
    grows: ClassVar[bool] = False
    """Whether the one head of all tasks may get further outputs between tasks (`SingleHead.grown`).
    It is not inherited, because a subclass may keep more than the state of each parameter."""
    kl_in_steps: ClassVar[bool] = True
    """Whether every step reads `kl_weight` anew, so that a schedule can change it in a task."""
    closed_form: ClassVar[bool] = False
    """Whether `end_task` learns a task without steps and without random numbers, by design."""
    asks_heads: ClassVar[bool] = False
    """Whether the method asks each head of its network separately."""
    lane_step: ClassVar[type[LaneStep] | None] = None
    """A training step of many runs of the method at once, with Adam. It is not inherited, because a
    subclass may train differently. A method without it trains its runs one by one."""
    lane_options: ClassVar[frozenset[str]] = frozenset()
    """The options that runs which train at once may set; they change no step."""
    recipe_keys: ClassVar[frozenset[str]] = frozenset()
    """The recipe keys that the method takes in addition to the settings of `Method`, if the method
    itself keeps a posterior over a network of point estimates: "prior_scale" and "initial_noise" if
    its constructor has them, and "eval_samples" if its predictions draw weights."""
    fixed_options: ClassVar[frozenset[str]] = frozenset()
    """Options of the base class that the constructor sets itself."""
