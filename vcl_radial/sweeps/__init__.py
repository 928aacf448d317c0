"""Searches over recipes: specification, execution and results."""
