"""The continual track: a method on a task sequence, trained task by task."""
