"""Radial and directional posteriors.

The figures of Oh, Adamczewski and Park (2020) that show densities and Bessel functions, computed
anew with the suite's own posteriors. Verdicts on published claims are decided by the numbers. In
full precision they are in the CSV file of each figure.
"""
