"""The price of an approximation: one linear model, its posterior carried in many shapes.

With fixed features, a linear head and a Gaussian likelihood of known noise the posterior of every
task sequence is known exactly, so that what a shape of the carried posterior loses can be measured:
in accuracy, and in nats from the exact posterior.
"""
