"""Continual-learning methods in plain PyTorch, one file per method; `base.Method` is the base."""
