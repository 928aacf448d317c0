"""Factors of the KL within a task: the loss of step s is mean NLL + w_s * kl_weight * KL / N.

With M steps in an epoch, E epochs in a task and T steps in all, for the step s = 0 .. T - 1, which
is the i-th step (from 1) of its epoch e (from 1):

    constant    w_s = 1
    linear      w_s = e / E
    minibatch   w_s = M 2^(M - i) / (2^M - 1)
    warm-up     w_s = min(1, 2 s / T)

"minibatch" is pi_i of Blundell et al. (2015, section 3.4) times M, because they weigh the KL of a
whole epoch: pi_i sums to 1 over an epoch, as the constant 1/M does. Nearly all of the KL is then in
an epoch's first steps.

"warm-up" is the `beta_func` of the code of Oh et al. (2020; their paper does not mention it),
min(s, A) / A from the first step s = 0 of the training, with A = 100 epochs, which is half of the
200 epochs in its README (github.com/ChangYong-Oh/RadiusDirectionPosteriors, `compress.py`). Here it
is half of a task.
"""

from __future__ import annotations

import math
from typing import Literal

KLSchedule = Literal["constant", "linear", "minibatch", "warm-up"]
"""Names of the schedules."""


def kl_factor(schedule: KLSchedule, step: int, epoch_steps: int, steps: int) -> float:
    """The factor w_s of the KL in a step.

    Args:
        schedule: name of the schedule.
        step: s, the number of the step in its task, from 0.
        epoch_steps: M, the number of steps in an epoch.
        steps: T, the number of steps in the task.
    """
    epoch, at = divmod(step, epoch_steps)
    if schedule == "linear":
        return (epoch + 1) / math.ceil(steps / epoch_steps)
    if schedule == "minibatch":  # by 2^M, which may overflow, numerator and denominator are divided
        return math.ldexp(epoch_steps, -at - 1) / (1 - math.ldexp(1, -epoch_steps))
    if schedule == "warm-up":
        return min(1.0, 2 * step / steps)
    return 1.0
