"""What surrounds an update: batches, checkpoints on disk, the log of a run, what a run costs."""
