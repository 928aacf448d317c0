"""The retinopathy track: which photographs a network should leave to an expert."""
