"""What `vcl-radial analyse` can draw; known without importing anything heavy.

An analysis is a module of this room, named as here with underscores, with a function
`analyse(setting: Setting) -> Analysis`.
"""

ANALYSES = {
    "soap-bubble": "how far draws are from the mean, over D (AISTATS Figs. 1 and 8, arXiv 2, 4)",
    "weight-marginal": "the density of one weight of a radial group (AISTATS Fig. 9)",
    "gradient-variance": "variance of the NLL's gradient over sigma, 3x3 conv (AISTATS Fig. 6)",
    "training-dynamics": "accuracy, NLL, KL and gradient noise in training (AISTATS Fig. 7)",
    "sample-distance": "sigma and distance of draws to the mean in training (arXiv Fig. 8)",
    "truncated-noise": "training on truncated Gaussian noise (AISTATS Fig. 11)",
    "cost": "parameters, epoch time, cost of a prediction, support (the blog's table)",
    "prior-penalty": "the corrected radial prior's penalty, and its noise (not in the papers)",
}
"""The analyses by name, each with what it shows."""
