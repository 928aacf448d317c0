"""Measurements of speed and memory; `python -m benchmarks.speed` runs them from a checkout.

A section is a module with a function `measure(setting: Setting) -> list[Row]`, named in `SECTIONS`
of `measuring.py`. The first line of its docstring is its title on the page, and the other
paragraphs are its notes; `PICTURES` lists its figures.
"""

import logging

# The import warns on a machine with a CUDA toolkit but no GPU.
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
