"""BAdam.

The toy regression of Kessler et al. (2020), computed anew with the suite's own methods. Verdicts on
published claims are decided by the numbers.
"""
