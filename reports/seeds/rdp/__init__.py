"""Radial and directional posteriors.

Do the densities of Oh, Adamczewski and Park (2020) and their approximations of Bessel functions
come out as printed?

The densities do; some statements on how tight or stable an approximation is do not (table).

The figures that show densities and Bessel functions, computed anew with the suite's own posteriors.
Verdicts on published claims are decided by the numbers. In full precision they are in the CSV file
of each figure.
"""

COVER = "vmf-density"
