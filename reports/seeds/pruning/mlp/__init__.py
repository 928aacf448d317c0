"""An MLP pruned by the signal-to-noise ratio of its weights: BAdam, Fig. 2."""
