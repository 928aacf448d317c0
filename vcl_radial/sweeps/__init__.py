"""Searches over recipes: what is searched, how it is carried out, and what came of it."""
