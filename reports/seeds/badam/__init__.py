"""BAdam.

Does the uncertainty of BAdam widen away from the data, unlike that of other variational methods?

It widens, but so do the others after the paper's 40,000 steps: over eight seeds half a unit from
the data BAdam is the widest in six, which no test decides; amid the data it is three times as wide
as linearised Laplace, and without an L2 penalty it predicts worse, against Appendix D.2.

The toy regression of Kessler et al. (2020), computed anew with the suite's own methods. Verdicts on
published claims are decided by the numbers.
"""
