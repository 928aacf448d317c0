"""Tables and pictures of runs on photographs, beside the paper's results; pure functions."""
