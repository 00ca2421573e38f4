"""Plugin and stock fairseq on the same data, seeds, updates and batches, and each single difference between them."""
