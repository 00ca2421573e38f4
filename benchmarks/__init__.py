"""Speed and memory, side by side with stock fairseq in one run. Nothing here is a test."""
