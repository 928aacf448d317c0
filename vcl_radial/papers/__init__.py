"""The figures and tables of the papers that are not benchmarks; run by `vcl-radial papers`.

A package is a page, whose docstring is its title and its introduction. A module of it with a
function `analyse(setting: Setting) -> Analysis` is a figure, found by its name; the first line of
its docstring says what it shows.
"""
