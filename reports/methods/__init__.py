"""The table of methods and tracks."""
