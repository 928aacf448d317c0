"""Tables and pictures of runs on photographs, beside the paper's: pure functions of tables."""
