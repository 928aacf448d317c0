"""What every track has from the run machine, with the same words: one suite, all tracks."""
