"""Shared parts of the papers' figures: settings, records and pages.

A page is a package beside its data, and its docstring is the title and the introduction. A module
of it with a function `analyse(setting: Setting) -> Analysis` is a figure, found by its name; the
first line of its docstring describes it. The TOML beside it has its texts and claims
(`reports.papers.texts`) and describes its picture (`reports.papers.picture`).
"""
