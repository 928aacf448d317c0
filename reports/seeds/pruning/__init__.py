"""Networks pruned by their posterior.

Does a posterior say which weights and units of a network can be left out?

It does in both papers' networks: the networks stay accurate, though not as small, or not ahead of
every other method, as published.

LeNet-5 pruned by the radii of its rows and columns, Table 2 of Oh, Adamczewski and Park (2020), and
an MLP pruned by the signal-to-noise ratio of its weights, Fig. 2 of Kessler et al. (2020).
Verdicts on published claims are decided by the numbers.
"""
