"""Paper, authors' code, stock fairseq and this plugin: where they differ, and by how much."""
