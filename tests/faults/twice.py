"""Two commands at work in one folder."""

import re
import time
from collections import Counter
from collections.abc import Iterator

from children import begin, fork
from work import Setting, ends_well, one_line, run, sweep

_LINES = 5
"""At most: the refusal of all runs in one, and each of four that the report passed over."""


def together(setting: Setting) -> Iterator[str | None]:
    """Two of the same command, begun at the same time or a random moment apart."""
    for work, refusal in (
        (run(seeds=2), "another command is running"),
        (sweep(setting), "another sweep is running"),
    ):
        for number in range(max(2, setting.moments // 10)):
            root = setting.new_folder()
            # Forked ones start within milliseconds of each other; the last are ordinary ones.
            start = fork if number else begin
            first = start(work.arguments(root / "out"), root / "first")
            if number > 1:
                time.sleep(setting.rng.uniform(0.0, 1.0))
            second = start(work.arguments(root / "out"), root / "second")
            ends = [first.wait(), second.wait()]
            fault = next(
                (
                    f
                    for end in ends
                    if end.code != 0 and (f := one_line(end, 1, refusal, most=_LINES))
                ),
                None,
            )
            done: Counter[str] = Counter()
            for end in ends:
                done.update(re.findall(r"^(\S+ seed \d+) +task 2 of 2", end.output, re.MULTILINE))
            if fault is None and done and max(done.values()) > 1:
                fault = f"{max(done, key=lambda name: done[name])} was done twice"
            fault = fault or ends_well(setting, work, root)
            yield fault and f"{work.command[0]}: {fault}"
