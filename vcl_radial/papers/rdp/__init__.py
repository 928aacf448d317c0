"""Radial and directional posteriors.

The figures of Oh, Adamczewski and Park (2020) that show densities and Bessel functions, computed
anew with the suite's own posteriors. Whether a published claim agrees is decided by the numbers. In
full precision they are in the CSV file of each figure.
"""

FOLDER = "reports/seeds/rdp"
