"""The run machine: jobs, workers, folders, locks and checkpoints; it knows no track."""
