"""Soap-bubble analysis.

What the papers show of the radial posterior, computed again with the suite's posteriors and layers.
The numbers decide the verdicts on published claims; the CSV file of each figure has them in full
precision.
"""
