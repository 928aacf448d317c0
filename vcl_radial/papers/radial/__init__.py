"""Soap-bubble analysis.

What the papers on the radial posterior show of it, computed anew with the suite's own posteriors
and layers. Whether a published claim agrees is decided by the numbers. In full precision they are
in the CSV file of each figure.
"""

FOLDER = "reports/analysis"
