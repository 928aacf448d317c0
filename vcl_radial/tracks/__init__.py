"""How one run of each track is trained and scored."""
