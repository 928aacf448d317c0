"""The tracks: how a run is trained and scored, one folder per track."""
