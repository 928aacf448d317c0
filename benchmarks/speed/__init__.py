"""Measurements of speed and memory; `python -m benchmarks.speed` runs them from a checkout.

A section is a module with a function `measure(setting: Setting) -> Result`, named in `SECTIONS` of
`measuring.py`. The first line of its docstring says what it measures, its `PICTURES` what is drawn.
"""
