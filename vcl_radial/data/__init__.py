"""Training and test data of the tracks: image streams, photographs and tables."""
