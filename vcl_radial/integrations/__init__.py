"""The edges to other packages, which are not needed to use the suite."""
