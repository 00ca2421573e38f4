"""The training loss (section 5.4)."""
