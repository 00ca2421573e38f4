"""What this plugin registers with fairseq: thin wrappers around `paper` and `fast`."""
