"""Contextual bandits by Thompson sampling: Table 1 of the BAdam paper."""
