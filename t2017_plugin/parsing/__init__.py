"""English constituency parsing (section 6.3): trees as text, as symbols a model writes, and their scores."""
