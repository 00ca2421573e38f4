"""Search (section 6.1): beam 4, length penalty alpha 0.6, at most 50 tokens more than the source."""
