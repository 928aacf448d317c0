"""The memory of an exact posterior: what storage formats and smaller heads cost in accuracy."""
