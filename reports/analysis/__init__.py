"""Soap-bubble analysis.

What the papers on the radial posterior show of it, computed anew with the suite's own posteriors
and layers. Verdicts on published claims are decided by the numbers. In full precision they are
in the CSV file of each figure.
"""
