"""Tasks: what the data is and how it is searched."""
