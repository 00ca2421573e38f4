"""Trained and scored runs side by side: reading them, grouping seeds, significance, tables, curves and the page."""
