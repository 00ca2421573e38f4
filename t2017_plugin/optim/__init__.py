"""Optimiser and learning rate (section 5.3)."""
