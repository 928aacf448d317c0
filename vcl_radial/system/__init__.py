"""The process that runs: its seeds, output, warnings, threads and memory."""
