"""The evidence: pages, their data, and the code that makes them; `python -m reports` runs it."""
