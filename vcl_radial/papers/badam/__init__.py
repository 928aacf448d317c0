"""BAdam.

The toy regression of Kessler et al. (2020), computed anew with the suite's own methods. Whether a
published claim agrees is decided by the numbers.
"""

FOLDER = "reports/seeds/badam"
