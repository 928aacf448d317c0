"""BAdam.

Does the uncertainty of BAdam widen away from the data, unlike that of other variational methods?

Yes in one run of each method, which decides nothing: half a unit from the data it is nearly as wide
as that of linearised Laplace, and several times as wide as those of BBB, VADAM and dropout.

The toy regression of Kessler et al. (2020), computed anew with the suite's own methods. Verdicts on
published claims are decided by the numbers.
"""
