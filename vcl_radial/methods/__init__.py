"""Continual-learning methods in plain PyTorch, one file each; `base.Method` is what they share."""
