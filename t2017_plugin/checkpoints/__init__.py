"""Reading, checking and averaging of fairseq checkpoints; weights-only loading is never turned off."""
