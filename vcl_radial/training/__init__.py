"""The trainer of all tracks, and its sources of tasks."""
