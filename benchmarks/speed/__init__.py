"""Measurements of speed and memory; `python -m benchmarks.speed` runs them from a checkout.

A section is a module with a function `measure(setting: Setting) -> list[Row]`, named in `SECTIONS`
of `measuring.py`. The first line of its docstring is its title on the page, the rest its notes;
`PICTURES` says what is drawn.
"""

import logging

# Its import warns on a machine with a CUDA toolkit and no GPU.
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
