"""Measures every difference between the paper, the authors' code, stock fairseq and this plugin, in running code."""
