"""Soap-bubble analysis.

Do the draws of a radial posterior avoid the soap bubble of a Gaussian one, and does training gain
by it?

They do at equal sigma, as published: draws stay near the mean and the gradient's variance is low;
at equal noise of one weight both posteriors are of one size in distance and gradient noise, and
the gain in training is shown by single runs alone.

What the papers show of the radial posterior, computed again with the suite's posteriors and layers.
The numbers decide the verdicts on published claims; the CSV file of each figure has them in full
precision.
"""

COVER = "soap-bubble"
