"""The regression track: UCI sets, many splits as lanes of one program, and a set in sequence."""
