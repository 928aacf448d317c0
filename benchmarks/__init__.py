"""Benchmarks: one TOML each, searches in `sweeps/`, and measurements of speed in `speed/`."""
