"""The trainer under all tracks, and the tasks that it learns from."""
