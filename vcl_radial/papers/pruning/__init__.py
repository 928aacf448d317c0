"""Networks pruned by what their posterior says of each weight, unit or filter.

A subject of `vcl-radial prune` is a module here with `add_arguments(parser)` and `run(arguments)`.
"""
