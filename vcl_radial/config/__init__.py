"""Settings from outside: a user's classes by name, ranges of values, and command lines."""
