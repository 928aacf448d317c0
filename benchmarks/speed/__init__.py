"""Measurements of speed and memory; `python -m benchmarks.speed` runs them from a checkout.

A module with a function `measure(setting: Setting) -> Result` is a section, found by its name; the
first line of its docstring says what it measures, and its `PICTURES` what is drawn of it.
"""
