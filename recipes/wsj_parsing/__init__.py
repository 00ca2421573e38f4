"""English constituency parsing (section 6.3): from a treebank, or made-up trees, to F1."""
